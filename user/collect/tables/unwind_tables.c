// SPDX-License-Identifier: MIT
#include "collect/tables/unwind_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/map.h"
#include "base/memory.h"
#include "collect/tables/arrays.h"
#include "collect/tables/offers.h"

struct module {
	uint64_t key;
	uint32_t rows; /* 0: the slot is free */
	uint32_t pages;
	uint32_t users; /* number of mappings of it in published processes */
	/* the arrays hold its rows; otherwise its slot has no pages, and BPF reports when it meets the file */
	bool is_in;
	bool is_missed; /* the arrays do not hold its rows, and BPF has met the file */
	uint64_t round; /* the round in which it was last added or found */
	uint64_t used_ns; /* when BPF was last seen to need it; at first, looked_ns when it was added */
	struct payer noter, payer; /* of the slot, and of the rows if they are in */
};

/* files used within this time are not evicted: otherwise rows would be evicted and added all the time */
#define UNUSED_NS (5 * NS_PER_SEC)

#define FILE_MODULES 1024 /* for one process */
#define FILE_MAPPINGS (3 * DUET_UNWIND_PROCESS_MAPPINGS) /* slices: one in force, the next, one not yet free */
#define FILE_PAGE_ROWS 8 /* rows in a page of code: libjvm.so has 14, hardly any file has fewer than 8 */
enum { ROWS, PAGES, MODULES, MAPPINGS, ARRAYS };

struct unwind_tables {
	struct array arrays[ARRAYS];
	/* two of the arrays, typed */
	struct duet_unwind_module *modules;
	struct duet_unwind_mapping *mappings;
	int processes_fd; /* BPF's map of processes; unused for an agent */
	int contexts_fd; /* the same of where they have contexts */
	struct offers offers; /* of mapped files */
	uint64_t serial; /* serial of the file added last */
	struct duet_unwind_file *file; /* the agent's file; NULL: the tables are BPF's */
	uint64_t file_bytes;
	uint64_t generation; /* generation of the slice published last */
	int file_fd; /* for the agent; read-only */

	/* Grows with each published process. Files found for the current process are not dropped to make room. */
	uint64_t round;
	/*
	 * Time of the last unwind_tables_look(); 0: none yet. Files added before the first look may be evicted at once,
	 * unless it finds that BPF has used them.
	 */
	uint64_t looked_ns;
	struct module known[DUET_UNWIND_MAX_MODULES];
	struct map by_key; /* key -> index of the module */
	struct map slices; /* pid -> index of its first mapping << 32 | number of mappings */
	struct map payers; /* pid -> payer.key of its slice */
	struct payer payer; /* see unwind_tables_set_payer() */
	uint32_t looked_at; /* index of the module at which the next look begins */
};

/* ---- opening ---- */

static int open_arrays(struct unwind_tables *tables, const struct unwind_tables_maps *maps)
{
	const struct unwind_tables_map *const of[ARRAYS] = {&maps->rows, &maps->pages, &maps->modules, &maps->mappings};
	static const size_t element_bytes[ARRAYS] = {sizeof(struct duet_unwind_row), sizeof(struct duet_unwind_page),
						     sizeof(*tables->modules), sizeof(*tables->mappings)};
	int err = 0;

	for (int i = 0; !err && i < ARRAYS; i++)
		err = array_init(&tables->arrays[i], of[i], element_bytes[i]);
	for (int i = MODULES; !err && i < ARRAYS; i++)
		err = array_map(&tables->arrays[i], of[i]);
	tables->modules = tables->arrays[MODULES].at;
	tables->mappings = tables->arrays[MAPPINGS].at;
	return err;
}

static struct unwind_tables *tables_new(void)
{
	struct unwind_tables *tables = calloc(1, sizeof(*tables));

	if (tables) {
		tables->file_fd = tables->offers.fd = -1;
		tables->round = 1;
	}
	return tables;
}

int unwind_tables_open(struct unwind_tables **ret, const struct unwind_tables_maps *maps)
{
	struct unwind_tables *tables = tables_new();
	int err = tables ? open_arrays(tables, maps) : -ENOMEM;

	if (err) {
		unwind_tables_close(tables);
		return err;
	}
	extents_share(&tables->arrays[ROWS].free, ROOM_UNWIND_ROWS);
	extents_share(&tables->arrays[PAGES].free, ROOM_UNWIND_PAGES);
	extents_share(&tables->arrays[MODULES].free, ROOM_UNWIND_FILES);
	extents_share(&tables->arrays[MAPPINGS].free, ROOM_UNWIND_MAPPINGS);
	room_set_size(ROOM_UNWIND_PROCESSES, maps->processes.entries);
	tables->processes_fd = maps->processes.fd;
	tables->contexts_fd = maps->contexts.fd;
	if (maps->files.entries)
		offers_open(&tables->offers, maps->files.fd, maps->files.entries);
	*ret = tables;
	return 0;
}

static int map_file(struct unwind_tables *tables, int fd, const struct duet_unwind_file *head)
{
	const struct duet_unwind_offsets at = duet_unwind_offsets(head);
	struct unwind_tables_maps arrays = {
		.rows = {fd, head->rows, at.rows},
		.pages = {fd, head->pages, at.pages},
		.modules = {fd, head->modules, at.modules},
		.mappings = {fd, head->mappings, at.mappings},
	};
	void *page;
	int err;

	if (ftruncate(fd, (off_t)at.end) < 0)
		return -errno;
	page = mmap(NULL, DUET_UNWIND_FILE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	tables->file = page;
	*tables->file = *head;
	tables->file_bytes = at.end;
	err = open_arrays(tables, &arrays);
	if (!err) /* now: once the file is sealed, nobody can map it for writing */
		err = array_map(&tables->arrays[ROWS], &arrays.rows);
	return err ? err : array_map(&tables->arrays[PAGES], &arrays.pages);
}

static struct duet_unwind_file file_head(size_t bytes)
{
	uint32_t pages = (uint32_t)(bytes / (FILE_PAGE_ROWS + 1) / sizeof(struct duet_unwind_row));

	return (struct duet_unwind_file){
		.magic = DUET_UNWIND_MAGIC,
		.version = DUET_UNWIND_VERSION,
		.rows = pages * FILE_PAGE_ROWS,
		.pages = pages,
		.modules = FILE_MODULES,
		.mappings = FILE_MAPPINGS,
	};
}

uint64_t unwind_tables_file_bytes(size_t bytes)
{
	const struct duet_unwind_file head = file_head(bytes);

	return duet_unwind_offsets(&head).end;
}

int unwind_tables_open_file(struct unwind_tables **ret, size_t bytes)
{
	const struct duet_unwind_file head = file_head(bytes);
	struct unwind_tables *tables = tables_new();
	IO_FD(fd) = memfd_create("duet-unwind", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? -errno : -ENOMEM;

	if (tables && fd >= 0)
		err = map_file(tables, fd, &head);
	if (!err)
		err = tables->file_fd = arrays_open_read_only(fd);
	if (err < 0) {
		unwind_tables_close(tables);
		return err;
	}
	*ret = tables;
	return 0;
}

int unwind_tables_fd(const struct unwind_tables *tables)
{
	return tables->file_fd;
}

void unwind_tables_close_fd(struct unwind_tables *tables)
{
	io_close(&tables->file_fd);
}

uint64_t unwind_tables_bytes(const struct unwind_tables *tables)
{
	return tables->file_bytes;
}

size_t unwind_tables_touched(const struct unwind_tables *tables)
{
	size_t bytes = 0;

	for (int i = 0; i < ARRAYS; i++)
		bytes += tables->arrays[i].at ? memory_touched(tables->arrays[i].at, tables->arrays[i].bytes) : 0;
	return bytes;
}

void unwind_tables_close(struct unwind_tables *tables)
{
	if (!tables)
		return;
	for (int i = 0; i < ARRAYS; i++) {
		if (tables->arrays[i].at)
			munmap(tables->arrays[i].at, tables->arrays[i].bytes);
		extents_release(&tables->arrays[i].free);
	}
	for (enum room room = ROOM_UNWIND_ROWS; !tables->file && room <= ROOM_UNWIND_PROCESSES; room++)
		room_empty(room);
	if (tables->file)
		munmap(tables->file, DUET_UNWIND_FILE_PAGE);
	unwind_tables_close_fd(tables);
	offers_release(&tables->offers);
	map_release(&tables->by_key);
	map_release(&tables->slices);
	map_release(&tables->payers);
	free(tables);
}

void unwind_tables_set_payer(struct unwind_tables *tables, const struct payer *payer)
{
	tables->payer = *payer;
}

/* ---- files ---- */

int unwind_tables_find(struct unwind_tables *tables, uint64_t key)
{
	uint64_t index;

	if (!map_get(&tables->by_key, key, &index))
		return -ENOENT;
	tables->known[index].round = tables->round;
	return (int)index;
}

/* After this call the walk follows frame pointers in this file. */
static void take_rows_out(struct unwind_tables *tables, uint32_t index, uint64_t now_ns)
{
	struct duet_unwind_module *module = &tables->modules[index];
	struct module *known = &tables->known[index];

	if (!known->is_in)
		return;
	known->is_in = false;
	__atomic_store_n(&module->pages, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&module->used, 0, __ATOMIC_RELAXED);
	extents_give(&tables->arrays[ROWS].free, &known->payer, module->first_row, known->rows, now_ns);
	extents_give(&tables->arrays[PAGES].free, &known->payer, module->first_page, known->pages, now_ns);
}

static void drop_module(struct unwind_tables *tables, uint32_t index, uint64_t now_ns)
{
	struct module *known = &tables->known[index];

	take_rows_out(tables, index, now_ns);
	__atomic_store_n(&tables->modules[index].serial, 0, __ATOMIC_RELAXED);
	extents_give(&tables->arrays[MODULES].free, &known->noter, index, 1, now_ns);
	map_remove(&tables->by_key, known->key);
	*known = (struct module){0};
}

static void use_modules(struct unwind_tables *tables, uint32_t first, uint32_t count, int change)
{
	for (uint32_t i = first; i < first + count; i++)
		if (tables->mappings[i].module < DUET_UNWIND_MAX_MODULES)
			tables->known[tables->mappings[i].module].users += (uint32_t)change;
}

static struct payer payer_of(const struct unwind_tables *tables, uint64_t pid)
{
	struct payer payer = {0};

	map_get(&tables->payers, pid, &payer.key);
	return payer;
}

/* Frees the process's old slice, which must not be reachable any more. */
static void drop_slice(struct unwind_tables *tables, pid_t pid)
{
	const struct payer payer = payer_of(tables, (uint64_t)pid);
	uint64_t slice;

	if (!map_get(&tables->slices, (uint64_t)pid, &slice))
		return;
	use_modules(tables, (uint32_t)(slice >> 32), (uint32_t)slice, -1);
	extents_give(&tables->arrays[MAPPINGS].free, &payer, (uint32_t)(slice >> 32), (uint32_t)slice,
		     clock_monotonic_ns());
	if (!tables->file)
		room_give(ROOM_UNWIND_PROCESSES, &payer, 1);
	map_remove(&tables->payers, (uint64_t)pid);
	map_remove(&tables->slices, (uint64_t)pid);
}

/* Drops the slices of processes whose end we missed: they are no longer in BPF's map. */
static bool drop_dead_slices(struct unwind_tables *tables)
{
	struct duet_unwind_process process;
	uint64_t pid, slice;
	size_t cursor = 0;
	bool dropped = false;

	while (!tables->file && map_next(&tables->slices, &cursor, &pid, &slice)) {
		pid_t key = (pid_t)pid;

		if (bpf_map_lookup_elem(tables->processes_fd, &key, &process) == 0)
			continue;
		drop_slice(tables, key);
		dropped = true;
	}
	return dropped;
}

/* Drops files that no living process maps, of this payer or of all (NULL). Returns false if there was none. */
static bool drop_unused(struct unwind_tables *tables, const struct payer *payer)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool dropped = false;

	for (uint32_t i = 0; i < DUET_UNWIND_MAX_MODULES; i++) {
		const struct module *known = &tables->known[i];

		if (!known->rows || known->users || known->round == tables->round ||
		    (payer && known->payer.key != payer->key && known->noter.key != payer->key))
			continue;
		drop_module(tables, i, now_ns);
		dropped = true;
	}
	return dropped;
}

/*
 * Call after -ENOSPC or -EDQUOT. Drops files that no living process maps, and, if the arrays were full, sleeps until
 * their room can be used. Returns false if there was none.
 */
static bool make_room(struct unwind_tables *tables, int64_t err)
{
	bool dropped;

	if (err != -ENOSPC)
		return err == -EDQUOT && drop_unused(tables, &tables->payer);
	dropped = drop_dead_slices(tables);
	dropped |= drop_unused(tables, NULL);
	if (dropped)
		clock_sleep(DUET_UNWIND_GRACE_NS);
	return dropped;
}

static bool may_have(const struct unwind_tables *tables, const struct payer *payer, uint32_t rows, uint32_t pages)
{
	return extents_may(&tables->arrays[ROWS].free, payer, rows) &&
	       extents_may(&tables->arrays[PAGES].free, payer, pages);
}

/* Returns 0 if so many fit, else -ENOSPC or -EDQUOT. */
static int lack_of_room(struct unwind_tables *tables, uint32_t rows, uint32_t pages)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!may_have(tables, &tables->payer, rows, pages))
		return -EDQUOT;
	return extents_has(&tables->arrays[ROWS].free, rows, now_ns) &&
			       extents_has(&tables->arrays[PAGES].free, pages, now_ns)
		       ? 0
		       : -ENOSPC;
}

bool unwind_tables_have_room(struct unwind_tables *tables, uint32_t rows, uint32_t pages)
{
	int err = lack_of_room(tables, rows, pages);

	return !err || (make_room(tables, err) && !lack_of_room(tables, rows, pages));
}

/* Takes room for a file's rows and pages. Returns 0, -ENOSPC or -EDQUOT: then nothing is taken. */
static int take_room(struct unwind_tables *tables, uint32_t rows, uint32_t pages, struct duet_unwind_module *ret)
{
	uint64_t now_ns = clock_monotonic_ns();
	int64_t first_row = extents_take(&tables->arrays[ROWS].free, &tables->payer, rows, now_ns);
	int64_t first_page = extents_take(&tables->arrays[PAGES].free, &tables->payer, pages, now_ns);

	if (first_row >= 0 && first_page >= 0) {
		*ret = (struct duet_unwind_module){.first_row = (uint32_t)first_row,
						   .first_page = (uint32_t)first_page};
		return 0;
	}
	if (first_row >= 0)
		extents_give(&tables->arrays[ROWS].free, &tables->payer, (uint32_t)first_row, rows, 0);
	if (first_page >= 0)
		extents_give(&tables->arrays[PAGES].free, &tables->payer, (uint32_t)first_page, pages, 0);
	return first_row == -EDQUOT || first_page == -EDQUOT ? -EDQUOT : -ENOSPC;
}

int unwind_tables_note(struct unwind_tables *tables, uint64_t key, uint32_t rows, uint32_t pages)
{
	int64_t index = unwind_tables_find(tables, key);

	if (index >= 0)
		return (int)index;
	index = extents_take(&tables->arrays[MODULES].free, &tables->payer, 1, clock_monotonic_ns());
	if (index < 0 && make_room(tables, index))
		index = extents_take(&tables->arrays[MODULES].free, &tables->payer, 1, clock_monotonic_ns());
	if (index < 0)
		return (int)index;
	tables->modules[index] = (struct duet_unwind_module){.serial = ++tables->serial};
	tables->known[index] = (struct module){
		.key = key, .rows = rows, .pages = pages, .round = tables->round, .noter = tables->payer};
	if (map_put(&tables->by_key, key, (uint64_t)index) < 0) {
		drop_module(tables, (uint32_t)index, 0);
		return -ENOMEM;
	}
	return (int)index;
}

static int write_rows(const struct unwind_tables *tables, struct duet_unwind_module room,
		      const struct unwind_rows *rows)
{
	int err = array_write(&tables->arrays[ROWS], room.first_row * sizeof(*rows->rows.items), rows->rows.items,
			      rows->rows.len * sizeof(*rows->rows.items));

	return err ? err : array_write(&tables->arrays[PAGES], room.first_page * sizeof(*rows->pages.items),
				       rows->pages.items, rows->pages.len * sizeof(*rows->pages.items));
}

/* Published processes may map the slot already: a walk sees either the whole file or one without pages. */
static void put_rows_in(struct unwind_tables *tables, uint32_t index, struct duet_unwind_module room,
			const struct unwind_rows *rows)
{
	struct duet_unwind_module *module = &tables->modules[index];
	struct module *known = &tables->known[index];

	take_rows_out(tables, index, clock_monotonic_ns());
	known->payer = tables->payer;
	known->rows = (uint32_t)rows->rows.len;
	known->pages = (uint32_t)rows->pages.len;
	room.serial = module->serial;
	*module = room;
	if (known->users) /* BPF has no acquire to pair with the release: wait for walks that began before */
		clock_sleep(DUET_UNWIND_GRACE_NS);
	__atomic_store_n(&module->pages, known->pages, __ATOMIC_RELEASE);
	known->is_in = true;
	known->is_missed = false;
	known->used_ns = tables->looked_ns;
}

int unwind_tables_add(struct unwind_tables *tables, uint64_t key, const struct unwind_rows *rows)
{
	uint32_t row_count = (uint32_t)rows->rows.len, page_count = (uint32_t)rows->pages.len;
	struct duet_unwind_module room;
	int index, err = take_room(tables, row_count, page_count, &room);

	if (err < 0 && make_room(tables, err))
		err = take_room(tables, row_count, page_count, &room);
	if (err < 0)
		return err;
	err = write_rows(tables, room, rows);
	index = err ? err : unwind_tables_note(tables, key, row_count, page_count);
	if (index >= 0)
		return put_rows_in(tables, (uint32_t)index, room, rows), index;
	extents_give(&tables->arrays[ROWS].free, &tables->payer, room.first_row, row_count, 0);
	extents_give(&tables->arrays[PAGES].free, &tables->payer, room.first_page, page_count, 0);
	return index;
}

/* ---- evicting files for others ---- */

/* Returns a process that maps the file, and into whose user's share it fits, or 0. */
static pid_t user_of(const struct unwind_tables *tables, uint32_t module)
{
	const struct module *known = &tables->known[module];
	uint64_t pid, slice;
	size_t cursor = 0;

	while (map_next(&tables->slices, &cursor, &pid, &slice)) {
		const struct payer payer = payer_of(tables, pid);

		for (uint32_t i = 0; i < (uint32_t)slice && may_have(tables, &payer, known->rows, known->pages); i++)
			if (tables->mappings[(slice >> 32) + i].module == module)
				return (pid_t)pid;
	}
	return 0;
}

/*
 * Returns true if BPF has used the module since the last call. No atomic exchange is necessary: if BPF sets the flag
 * between the load and the store, it sets it again with the next sample.
 */
static bool was_used(struct unwind_tables *tables, uint32_t module)
{
	uint32_t *used = &tables->modules[module].used;

	if (!__atomic_load_n(used, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(used, 0, __ATOMIC_RELAXED);
	return true;
}

pid_t unwind_tables_look(struct unwind_tables *tables, uint64_t now_ns)
{
	uint32_t first = tables->looked_at; /* in turn, so that no file comes before all others */
	pid_t pid = 0;

	tables->looked_ns = now_ns;
	for (uint32_t n = 0; n < DUET_UNWIND_MAX_MODULES; n++) {
		uint32_t i = (first + n) % DUET_UNWIND_MAX_MODULES;
		struct module *known = &tables->known[i];

		if (!known->rows || (pid && !known->is_in) || !was_used(tables, i))
			continue;
		known->used_ns = now_ns;
		known->is_missed = !known->is_in;
		if (known->is_missed && (pid = user_of(tables, i)))
			tables->looked_at = i + 1;
	}
	return pid;
}

static bool makes_room_before(const struct module *one, const struct module *other)
{
	return one->used_ns != other->used_ns ? one->used_ns < other->used_ns : one->rows > other->rows;
}

/* Returns the file that has been unused for the longest time, or NULL if all were used within UNUSED_NS. */
static struct module *least_used(struct unwind_tables *tables)
{
	struct module *found = NULL;

	for (uint32_t i = 0; i < DUET_UNWIND_MAX_MODULES; i++) {
		struct module *known = &tables->known[i];

		if (known->is_in && known->used_ns + UNUSED_NS <= tables->looked_ns &&
		    (!found || makes_room_before(known, found)))
			found = known;
	}
	return found;
}

/* Evicts unused files until they had this many rows and pages together. Returns false if no file was unused. */
static bool make_room_of_unused(struct unwind_tables *tables, uint32_t rows, uint32_t pages)
{
	uint32_t gained_rows = 0, gained_pages = 0;
	struct module *unused;

	while ((gained_rows < rows || gained_pages < pages) && (unused = least_used(tables))) {
		gained_rows += unused->rows;
		gained_pages += unused->pages;
		take_rows_out(tables, (uint32_t)(unused - tables->known), clock_monotonic_ns());
	}
	if (gained_rows)
		clock_sleep(DUET_UNWIND_GRACE_NS);
	return gained_rows != 0;
}

bool unwind_tables_bring_back(struct unwind_tables *tables, int module)
{
	struct module *known = &tables->known[module];

	if (tables->file) /* an agent does not report what it uses */
		return !known->is_in && unwind_tables_have_room(tables, known->rows, known->pages);
	if (!known->is_missed || unwind_tables_have_room(tables, known->rows, known->pages))
		return known->is_missed;
	if (lack_of_room(tables, known->rows, known->pages) == -EDQUOT)
		return false;
	while (known->is_missed && !unwind_tables_have_room(tables, known->rows, known->pages))
		known->is_missed = make_room_of_unused(tables, known->rows, known->pages);
	return known->is_missed;
}

bool unwind_tables_takes_offers(const struct unwind_tables *tables)
{
	return tables->offers.fd >= 0;
}

void unwind_tables_offer(struct unwind_tables *tables, const struct duet_mapped_file *file,
			 const struct duet_unwind_mapping *mapping)
{
	offers_put(&tables->offers, &(struct offer){
					    .file = *file,
					    .rows.base = mapping->base - mapping->start,
					    .rows.serial = tables->modules[mapping->module].serial,
					    .rows.module = mapping->module,
					    .payer = tables->payer,
				    });
}

/* ---- processes ---- */

/* Makes the walk use this slice. */
static int put_in_force(struct unwind_tables *tables, pid_t pid, const struct duet_unwind_process *process)
{
	/* The system call orders the earlier stores before this one. */
	if (!tables->file)
		return bpf_map_update_elem(tables->processes_fd, &pid, process, BPF_ANY);
	tables->file->slices[process->generation % 2] = *process;
	/* Release pairs with the agent's acquire: once the agent sees the generation, it sees all earlier stores. */
	__atomic_store_n(&tables->file->generation, process->generation, __ATOMIC_RELEASE);
	return 0;
}

/* An agent's arrays are for one process. */
static bool may_publish(const struct unwind_tables *tables, pid_t pid)
{
	uint64_t slice;

	if (tables->file || map_get(&tables->slices, (uint64_t)pid, &slice) ||
	    room_has(ROOM_UNWIND_PROCESSES, &tables->payer, 1))
		return true;
	room_refuse(ROOM_UNWIND_PROCESSES, &tables->payer);
	return false;
}

static int publish(struct unwind_tables *tables, pid_t pid, uint64_t start_ticks,
		   const struct duet_unwind_mapping *mappings, uint32_t count)
{
	struct duet_unwind_process process = {.start_ticks = start_ticks, .mappings = count};
	int64_t first;
	int err;

	if (!may_publish(tables, pid))
		return -EDQUOT;
	first = extents_take(&tables->arrays[MAPPINGS].free, &tables->payer, count, clock_monotonic_ns());
	if (first < 0 && make_room(tables, first))
		first = extents_take(&tables->arrays[MAPPINGS].free, &tables->payer, count, clock_monotonic_ns());
	if (first < 0)
		return (int)first;
	process.first = (uint32_t)first;
	process.generation = ++tables->generation;
	if (count)
		memcpy(tables->mappings + first, mappings, count * sizeof(*mappings));
	err = put_in_force(tables, pid, &process);
	if (err < 0) {
		extents_give(&tables->arrays[MAPPINGS].free, &tables->payer, process.first, count, 0);
		return err;
	}
	use_modules(tables, process.first, count, 1);
	drop_slice(tables, pid);
	if (!tables->file)
		room_add(ROOM_UNWIND_PROCESSES, &tables->payer, 1);
	(void)map_put(&tables->payers, (uint64_t)pid, tables->payer.key);
	return map_put(&tables->slices, (uint64_t)pid, (uint64_t)first << 32 | count);
}

int unwind_tables_publish(struct unwind_tables *tables, pid_t pid, uint64_t start_ticks,
			  const struct duet_unwind_mapping *mappings, size_t count)
{
	int err = count > DUET_UNWIND_PROCESS_MAPPINGS
			  ? -E2BIG
			  : publish(tables, pid, start_ticks, mappings, (uint32_t)count);

	tables->round++;
	return err;
}

void unwind_tables_set_contexts(struct unwind_tables *tables, pid_t pid, const struct duet_context_sources *sources)
{
	if (tables->file)
		tables->file->contexts = *sources;
	else if (sources->of[0].place != DUET_CONTEXT_NOWHERE)
		(void)bpf_map_update_elem(tables->contexts_fd, &pid, sources, BPF_ANY);
	else
		(void)bpf_map_delete_elem(tables->contexts_fd, &pid);
}

void unwind_tables_forget(struct unwind_tables *tables, pid_t pid)
{
	bpf_map_delete_elem(tables->processes_fd, &pid);
	bpf_map_delete_elem(tables->contexts_fd, &pid);
	drop_slice(tables, pid);
}
