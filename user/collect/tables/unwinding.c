// SPDX-License-Identifier: MIT
#include "collect/tables/unwinding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "duet_jvm.h"
#include "proc/room.h"
#include "sym/target_file.h"

/* least age of the mappings when they are read again: wild pcs must not cause a read for every sample */
#define MAPS_MIN_AGE_NS (100 * NS_PER_MS)
#define YOUNG_MIN_AGE_NS (5 * NS_PER_MS) /* the same for a process that is still loading its libraries */
#define YOUNG_NS NS_PER_SEC
#define AT_ONCE_NS (2 * NS_PER_SEC) /* a large file's rows take up to a second on a busy machine */
#define VDSO_IDENTITY 1 /* all processes have the same vdso */
/* one file comes back in each interval, so that reading costs little however many are missing */
#define LOOK_NS NS_PER_SEC
/* rows that were evicted within this time after they were made are not made again at once */
#define REMAKE_NS NS_PER_SEC
#define MAX_FILES 16384 /* about 8 MB; above, files are dropped, but their rows stay in the tables */
#define MAX_LOOKED_UP (4 * DUET_UNWIND_PROCESS_MAPPINGS)
#define OFFERED_NS (10 * NS_PER_SEC) /* after this time the file is looked up again: it may have changed */

/* What is cached of a file. Its rows are only in the tables, as long as there is room. */
struct native_file {
	struct unwind_file elf; /* without its rows */
	uint64_t key; /* key of its module in the tables, a hash of its rows; 0: they have not been made yet */
	bool has_rows; /* true also before the rows have been made; false: do not try again */
	uint32_t rows; /* number of its rows and pages, once they have been made */
	uint32_t pages;
	struct duet_context_source context; /* with an address in the file */
	bool is_refused; /* there was no room for its rows */
	uint64_t made_ns; /* when its rows were made; 0: not yet */
	uint64_t bytes; /* size of the file, and time of the last write to it */
	struct timespec changed;
	struct payer payer; /* for whom it was found first */
	uint64_t identity; /* key in unwinding->files */
};

static struct native_file not_there; /* for mappings whose file cannot be found; never written to */

void unwinding_init(struct unwinding *unwinding, struct unwind_tables *tables)
{
	*unwinding = (struct unwinding){.tables = tables};
	room_set_size(ROOM_UNWIND_KNOWN, MAX_FILES);
}

static void stop_making(struct unwinding *unwinding)
{
	if (unwinding->made)
		file_rows_end(&unwinding->making, NULL);
	unwinding->made = NULL;
}

/* Forgets the cached files of this payer, or of all (NULL). Those of others are found again without being read. */
static void forget_files(struct unwinding *unwinding, const struct payer *payer)
{
	size_t kept = 0, count = unwinding->owned.len;

	map_release(&unwinding->files);
	map_release(&unwinding->looked_up);
	for (size_t i = 0; i < count; i++) {
		struct native_file *file = unwinding->owned.items[i];

		if ((payer && file->payer.key != payer->key) || file == unwinding->made) {
			unwinding->owned.items[kept++] = file;
			(void)map_put_ptr(&unwinding->files, file->identity, file); /* may fail: it is a cache */
			continue;
		}
		room_give(ROOM_UNWIND_KNOWN, &file->payer, 1);
		unwind_file_release(&file->elf);
		free(file);
	}
	unwinding->owned.len = kept;
}

void unwinding_forget_files(struct unwinding *unwinding)
{
	stop_making(unwinding);
	forget_files(unwinding, NULL);
	vec_release(&unwinding->owned);
	map_release(&unwinding->offered_for_dead);
}

void unwinding_release(struct unwinding *unwinding)
{
	unwinding_forget_files(unwinding);
	vec_release(&unwinding->mappings);
	vec_release(&unwinding->wanted);
	vec_release(&unwinding->later);
}

/* Returns NULL when out of memory. */
static struct native_file *own_file(struct unwinding *unwinding, uint64_t identity)
{
	struct native_file *file = calloc(1, sizeof(*file));

	if (!room_has(ROOM_UNWIND_KNOWN, &unwinding->payer, 1))
		forget_files(unwinding, &unwinding->payer);
	if (!file || vec_push(&unwinding->owned, file) < 0) {
		free(file);
		return NULL;
	}
	room_add(ROOM_UNWIND_KNOWN, &unwinding->payer, 1);
	file->has_rows = true;
	file->payer = unwinding->payer;
	file->identity = identity;
	(void)map_put_ptr(&unwinding->files, identity, file); /* may fail: it is a cache */
	return file;
}

static int note_refused(struct unwinding *unwinding, const struct native_file *file)
{
	return unwind_tables_note(unwinding->tables, file->key, file->rows, file->pages);
}

/*
 * Files share a module when their rows are equal, such as copies of one build in several containers. A build id would
 * show that with less work, but whoever makes a file chooses its build id.
 */
static uint64_t key_of_rows(const struct unwind_rows *rows)
{
	uint64_t hash = hash_bytes(&rows->base, sizeof(rows->base), 0);

	hash = hash_bytes(rows->pages.items, rows->pages.len * sizeof(*rows->pages.items), hash);
	return hash_bytes(rows->rows.items, rows->rows.len * sizeof(*rows->rows.items), hash);
}

/* Returns true if the tables hold the file's rows, or noted the file because there was no room. */
static bool are_in_tables(struct unwinding *unwinding, const struct native_file *file, int *ret_module)
{
	*ret_module = file->key ? unwind_tables_find(unwinding->tables, file->key) : -ENOENT;
	return *ret_module >= 0 && !unwind_tables_bring_back(unwinding->tables, *ret_module);
}

/* Moves the rows into the tables, unless equal rows of another file are there. Returns the module or -errno. */
static int add_rows(struct unwinding *unwinding, struct native_file *file)
{
	bool is_first = !file->key; /* otherwise they are made again: the tables have a note of them */
	int module;

	file->key = key_of_rows(&file->elf.rows);
	file->rows = (uint32_t)file->elf.rows.rows.len;
	file->pages = (uint32_t)file->elf.rows.pages.len;
	file->made_ns = clock_monotonic_ns();
	if (!is_first || !are_in_tables(unwinding, file, &module))
		module = unwind_tables_add(unwinding->tables, file->key, &file->elf.rows);
	if (module == -ENOSPC || module == -EDQUOT) {
		loader_counters[DUET_LOADER_UNWIND_FILES] += !file->is_refused;
		file->is_refused = true;
		module = note_refused(unwinding, file);
	}
	unwind_rows_release(&file->elf.rows);
	file->elf.rows = (struct unwind_rows){0};
	return module;
}

/*
 * Returns false for a file whose rows would not fit: otherwise each process that maps it would cause another read. When
 * two files of a process make room for each other, one is left out: otherwise the process would never be published.
 */
static bool may_be_read(struct unwinding *unwinding, const struct native_file *file)
{
	if (file->made_ns && clock_monotonic_ns() - file->made_ns < REMAKE_NS)
		return false;
	return !file->is_refused || unwind_tables_have_room(unwinding->tables, file->rows, file->pages);
}

/* Puts the rows that are finished into the tables. Returns the module or -errno. */
static int take_made(struct unwinding *unwinding)
{
	struct native_file *file = unwinding->made;
	struct file_rows *making = &unwinding->making;
	/* HotSpot's assembler (os_cpu/linux_x86: copying, SafeFetch) has no call frame information and no frames. */
	bool has_gaps = duet_is_libjvm(making->path);

	unwinding->made = NULL;
	unwind_tables_set_payer(unwinding->tables, &unwinding->maker.payer);
	unwind_file_release(&file->elf);
	file->context = making->context;
	file_rows_end(making, &file->elf);
	file->has_rows = file->elf.rows.rows.len != 0;
	if (has_gaps)
		unwind_rows_fill_gaps(&file->elf.rows, &CFI_HOST);
	return file->has_rows ? add_rows(unwinding, file) : -ENODATA;
}

/* Continues with the rows of unwinding->made. Returns the module, -EAGAIN if they are not finished, or -errno. */
static int make_rows(struct unwinding *unwinding, const struct charge *charge, uint64_t until_ns)
{
	int err = file_rows_step(&unwinding->making, charge, until_ns);

	if (err == -EAGAIN || !err)
		return err ? err : take_made(unwinding);
	loader_counters[DUET_LOADER_UNWIND_FILES] += err == -ENOMEM;
	unwinding->made->has_rows = false;
	stop_making(unwinding);
	return err;
}

/* Takes ownership of `target`. Returns what make_rows() returns. */
static int begin_rows(struct unwinding *unwinding, const struct charge *charge, struct native_file *file,
		      struct target_file *target, const char *path, uint64_t until_ns)
{
	int err = file_rows_begin(&unwinding->making, charge, target, path);

	if (!err) {
		unwinding->made = file;
		unwinding->maker = *charge;
		return make_rows(unwinding, charge, until_ns);
	}
	loader_counters[DUET_LOADER_UNWIND_FILES] += err == -ENOMEM;
	file->has_rows = false;
	return err;
}

/* Returns NULL when out of memory. The rows also depend on the name, which the process chooses (duet_is_libjvm()). */
static struct native_file *identify(struct unwinding *unwinding, const struct target_file *target, const char *path)
{
	uint64_t identity = hash_u64(target_file_identity(target) + duet_is_libjvm(path));
	struct native_file *file = map_get_ptr(&unwinding->files, identity);

	if (file || !(file = own_file(unwinding, identity)))
		return file;
	file->bytes = (uint64_t)target->st.st_size;
	file->changed = target->st.st_mtim;
	return file;
}

/* Returns the file's module; -EAGAIN if its rows must be made first; or another -errno. */
static int ready_module(struct unwinding *unwinding, struct native_file *file)
{
	int module;

	if (!file->has_rows)
		return -ENODATA;
	if (are_in_tables(unwinding, file, &module))
		return module;
	return may_be_read(unwinding, file) ? -EAGAIN : note_refused(unwinding, file);
}

/*
 * Returns the file's module; -EAGAIN if its rows are not finished, or cannot be begun before those of another file are
 * finished; or another -errno. `path` is the file's path in the process. Releases `target`.
 */
static int module_of(struct unwinding *unwinding, const struct charge *charge, struct target_file *target,
		     const char *path, uint64_t until_ns, struct native_file **ret)
{
	struct native_file *file = identify(unwinding, target, path);
	int module = file ? ready_module(unwinding, file) : -ENOMEM;

	*ret = file;
	if (module == -EAGAIN && !unwinding->made)
		return begin_rows(unwinding, charge, file, target, path, until_ns);
	target_file_release(target);
	return module;
}

/* For a mapping whose file has not been looked up yet, or whose rows must be made. */
static int look_up(struct unwinding *unwinding, const struct charge *charge, const struct process *process,
		   const struct mapping *mapping, uint64_t until_ns, struct native_file **ret)
{
	struct target_file target;
	int err = target_file_find_mapping(&target, charge, process, mapping);

	if (!err)
		return module_of(unwinding, charge, &target, mapping->path, until_ns, ret);
	*ret = err == -ENOENT || err == -ESTALE ? &not_there : NULL;
	return err == -EAGAIN ? -EBUSY : err;
}

/* Drops the rows that are being made for a user who has used much. They are begun again when his process is tried. */
static void make_way(struct unwinding *unwinding, const struct charge *charge)
{
	if (unwinding->made && charge_is_little(&charge->payer) && !charge_is_little(&unwinding->maker.payer))
		stop_making(unwinding);
}

static int file_module(struct unwinding *unwinding, const struct charge *charge, const struct process *process,
		       const struct mapping *mapping, uint64_t until_ns, struct native_file **ret)
{
	uint64_t identity = process_mapping_id(process, mapping);
	int module = -EAGAIN;

	*ret = map_get_ptr(&unwinding->looked_up, identity);
	if (*ret)
		module = ready_module(unwinding, *ret);
	if (module == -EAGAIN && *ret)
		make_way(unwinding, charge);
	if (module != -EAGAIN || (*ret && unwinding->made))
		return module;
	module = look_up(unwinding, charge, process, mapping, until_ns, ret);
	if (*ret)
		(void)map_put_ptr(&unwinding->looked_up, identity, *ret); /* may fail: it is a cache */
	return module;
}

static int module_of_image(struct unwinding *unwinding, struct native_file *file, uint8_t *image, size_t bytes)
{
	struct unwind_file elf;
	int module;

	if (are_in_tables(unwinding, file, &module))
		return module;
	if (unwind_file_read_memory(&elf, image, bytes))
		return -ENODATA;
	unwind_file_release(&file->elf);
	file->elf = elf;
	return elf.rows.rows.len ? add_rows(unwinding, file) : -ENODATA;
}

static int vdso_module(struct unwinding *unwinding, const struct mapping *mapping, struct native_file **ret)
{
	size_t bytes;
	void *image = vdso_of(mapping, &bytes);

	if (image)
		*ret = map_get_ptr(&unwinding->files, VDSO_IDENTITY);
	if (image && !*ret)
		*ret = own_file(unwinding, VDSO_IDENTITY);
	return image && *ret ? module_of_image(unwinding, *ret, image, bytes) : -ENODATA;
}

/* Offers BPF a mapping, so that BPF knows the file in the next process that maps it. */
static void offer(struct unwinding *unwinding, const struct native_file *file, const struct mapping *mapping,
		  const struct duet_unwind_mapping *published)
{
	const struct duet_mapped_file mapped = {
		.inode = mapping->inode,
		.page = mapping->offset / (uint64_t)sysconf(_SC_PAGESIZE),
		.bytes = file->bytes,
		.changed_sec = file->changed.tv_sec,
		.changed_nsec = (uint32_t)file->changed.tv_nsec,
		.device = mapping->dev_major << 20 | mapping->dev_minor, /* MKDEV() in include/linux/kdev_t.h */
	};

	if (mapping->inode)
		unwind_tables_offer(unwinding->tables, &mapped, published);
}

/* Notes the file's variable of contexts, if it has one. A file has several mappings. */
static void add_context(struct unwinding *unwinding, const struct native_file *file, uint64_t bias)
{
	struct duet_context_source source = file->context;
	struct duet_context_source *of = unwinding->contexts.of;

	if (source.place == DUET_CONTEXT_NOWHERE)
		return;
	if (source.place != DUET_CONTEXT_FIXED)
		source.at += bias;
	for (size_t i = 0; i < DUET_CONTEXT_SOURCES; i++) {
		if (of[i].place == DUET_CONTEXT_NOWHERE)
			of[i] = source;
		if (of[i].place == source.place && of[i].at == source.at)
			return;
	}
}

/* Returns 0, also for a mapping without rows, or -EAGAIN if its rows are not finished. */
static int set_module(struct unwinding *unwinding, const struct charge *charge, const struct process *process,
		      const struct mapping *mapping, uint64_t until_ns, struct duet_unwind_mapping *published)
{
	struct native_file *file = NULL;
	uint64_t vaddr;
	int module = -ENODATA;

	if (!strcmp(mapping->path, "[vdso]"))
		module = vdso_module(unwinding, mapping, &file);
	else if (mapping->inode && mapping->path[0] == '/')
		module = file_module(unwinding, charge, process, mapping, until_ns, &file);
	if (module == -EAGAIN)
		return -EAGAIN;
	if (module < 0 || !unwind_file_vaddr(&file->elf, mapping->offset, mapping->end - mapping->start, &vaddr))
		return 0;
	published->module = (uint32_t)module;
	published->base = mapping->start - vaddr + file->elf.base;
	add_context(unwinding, file, mapping->start - vaddr);
	offer(unwinding, file, mapping, published);
	return 0;
}

/* Offers the mappings that the kernel makes of a file's code when the file is run. */
static void offer_code(struct unwinding *unwinding, struct native_file *file, const struct stat *st, int module)
{
	for (size_t i = 0; i < file->elf.segments.len; i++) {
		const struct elf_segment *segment = &file->elf.segments.items[i];
		uint64_t before = segment->offset % (uint64_t)sysconf(_SC_PAGESIZE);
		uint64_t base = file->elf.base - (segment->vaddr - before);
		struct duet_unwind_mapping code = {.base = base, .module = (uint32_t)module};
		struct mapping mapping = {.offset = segment->offset - before,
					  .inode = st->st_ino,
					  .dev_major = major(st->st_dev),
					  .dev_minor = minor(st->st_dev)};

		if (segment->is_code)
			offer(unwinding, file, &mapping, &code);
	}
}

void unwinding_prepare(struct unwinding *unwinding, const char *path)
{
	const struct charge *charge = CHARGE_OWN(getpid());
	struct target_file target;
	struct native_file *file;
	struct stat st;
	int module;

	if (!unwinding->tables || target_file_find(&target, charge, getpid(), path))
		return;
	st = target.st;
	module = module_of(unwinding, charge, &target, path, UINT64_MAX, &file);
	if (module >= 0)
		offer_code(unwinding, file, &st, module);
}

/*
 * HotSpot's compilers use the frame pointer as a general register; other JITs keep it. In a JVM's process, code in
 * memory may be HotSpot's or another JIT's.
 */
static enum duet_code mapping_code(const struct mapping *mapping, bool is_jvm)
{
	if (mapping_is_file(mapping))
		return DUET_CODE_FILE;
	return is_jvm ? DUET_CODE_UNKNOWN : DUET_CODE_MEMORY;
}

static int collect_mapping(struct unwinding *unwinding, const struct charge *charge, const struct process *process,
			   const struct mapping *mapping, bool is_jvm, uint64_t until_ns)
{
	struct duet_unwind_mapping published = {
		.start = mapping->start,
		.end = mapping->end,
		.module = DUET_UNWIND_NO_MODULE,
		.code = mapping_code(mapping, is_jvm),
	};
	int err = set_module(unwinding, charge, process, mapping, until_ns, &published);

	return err ? err : vec_push(&unwinding->mappings, published);
}

/*
 * Returns 0, -EAGAIN when the time is up, or another -errno. Looking up a file takes a while, so the time is checked
 * after each file. The next call does not look up the same file again.
 */
static int collect_mappings(struct unwinding *unwinding, const struct charge *charge, const struct process *process,
			    uint64_t until_ns)
{
	const struct mapping *mappings = process->maps.list.items;
	bool is_jvm = maps_libjvm(&process->maps);
	size_t count = process->maps.list.len;
	int err = 0;

	vec_clear(&unwinding->mappings);
	unwinding->contexts = (struct duet_context_sources){.start_ticks = process->start_ticks};
	if (count > DUET_UNWIND_PROCESS_MAPPINGS)
		return -E2BIG;
	if (unwinding->looked_up.len > MAX_LOOKED_UP)
		map_release(&unwinding->looked_up);
	for (size_t i = 0; !err && i < count; i++) {
		size_t before = unwinding->looked_up.len;

		err = collect_mapping(unwinding, charge, process, &mappings[i], is_jvm, until_ns);
		if (!err && i + 1 < count && unwinding->looked_up.len != before && clock_monotonic_ns() >= until_ns)
			err = -EAGAIN;
	}
	return err;
}

/* Returns where the version of the published mappings is stored: 1 + their maps_version; 0: none yet. */
static uint32_t *published_version(struct unwinding *unwinding, struct process *process)
{
	return unwinding->is_agents ? &unwinding->published_version : &collected_of(process)->published_version;
}

static void publish_contexts(struct unwinding *unwinding, const struct process *process)
{
	bool is_musl = unwinding->contexts.of[0].place != DUET_CONTEXT_NOWHERE && maps_have_musl(&process->maps);

	for (size_t i = 0; i < DUET_CONTEXT_SOURCES; i++)
		unwinding->contexts.of[i].is_musl = is_musl;
	unwind_tables_set_contexts(unwinding->tables, process->pid, &unwinding->contexts);
}

static int publish(struct unwinding *unwinding, const struct charge *charge, struct process *process,
		   uint64_t until_ns)
{
	int err = collect_mappings(unwinding, charge, process, until_ns);

	if (err == -EAGAIN)
		return err;
	*published_version(unwinding, process) = process->maps_version + 1;
	if (err < 0 || unwind_tables_publish(unwinding->tables, process->pid, process->start_ticks,
					     unwinding->mappings.items, unwinding->mappings.len) < 0)
		loader_counters[DUET_LOADER_UNWIND_PROCESSES]++;
	else
		publish_contexts(unwinding, process);
	return 0;
}

/* Returns true if BPF has been offered this part of the file lately. *ret_key is the key under which that is noted. */
static bool was_offered(const struct unwinding *unwinding, const struct mapping *mapping, uint64_t *ret_key)
{
	const uint64_t place[] = {mapping->inode, mapping->offset,
				  ((uint64_t)mapping->dev_major << 32) | mapping->dev_minor};
	uint64_t offered_ns;

	*ret_key = hash_bytes(place, sizeof(place), 0);
	return map_get(&unwinding->offered_for_dead, *ret_key, &offered_ns) &&
	       clock_monotonic_ns() < offered_ns + OFFERED_NS;
}

/*
 * Offers the files of an ended process. Later processes that run the same program may live as short, and BPF walks them
 * by these offers.
 */
static int offer_files(struct unwinding *unwinding, const struct charge *charge, struct process *process,
		       uint64_t until_ns)
{
	uint64_t key;

	if (unwinding->offered_for_dead.len > MAX_LOOKED_UP)
		map_release(&unwinding->offered_for_dead);
	for (size_t i = 0; i < process->maps.list.len; i++) {
		const struct mapping *mapping = &process->maps.list.items[i];
		struct duet_unwind_mapping offered = {.start = mapping->start};

		if (!mapping_is_file(mapping) || was_offered(unwinding, mapping, &key))
			continue;
		if (set_module(unwinding, charge, process, mapping, until_ns, &offered))
			return -EAGAIN;
		(void)map_put(&unwinding->offered_for_dead, key, clock_monotonic_ns()); /* may fail: it is a cache */
	}
	collected_of(process)->published_version = process->maps_version + 1;
	return 0;
}

/*
 * Continues with the file whose rows are being made, if there is one. Returns true if they are not finished. If the
 * payer of these rows has used up the allowance, they are dropped, so that others can make theirs.
 */
static bool make_more(struct unwinding *unwinding, uint64_t until_ns)
{
	struct charge charge;

	if (!unwinding->made)
		return false;
	if (charge_go_on(&charge, &unwinding->maker)) {
		(void)make_rows(unwinding, &charge, until_ns);
		(void)charge_end(&charge);
	} else {
		stop_making(unwinding);
	}
	return unwinding->made;
}

static bool is_published(struct unwinding *unwinding, struct process *process)
{
	return !unwinding->tables || (process->exited && !unwind_tables_takes_offers(unwinding->tables)) ||
	       *published_version(unwinding, process) == process->maps_version + 1;
}

int unwinding_publish(struct unwinding *unwinding, struct process *process, uint64_t until_ns)
{
	struct charge charge;
	uint64_t before_ns;
	int err;

	if (is_published(unwinding, process) || !charge_begin(&charge, process))
		return 0;
	before_ns = charge_all_ns();
	unwinding->payer = process->payer;
	unwind_tables_set_payer(unwinding->tables, &process->payer);
	err = process->exited ? offer_files(unwinding, &charge, process, until_ns)
			      : publish(unwinding, &charge, process, until_ns);
	process->maps_cost_ns += charge_end(&charge);
	unwinding->work_ns += charge_all_ns() - before_ns;
	return err;
}

void unwinding_publish_now(struct unwinding *unwinding, struct process *process)
{
	uint64_t until_ns = clock_monotonic_ns() + AT_ONCE_NS, before_ns = charge_all_ns();

	if (is_published(unwinding, process))
		return;
	make_more(unwinding, until_ns);
	unwinding->work_ns += charge_all_ns() - before_ns;
	(void)unwinding_publish(unwinding, process, until_ns);
}

void unwinding_want(struct unwinding *unwinding, struct process *process)
{
	if (!unwinding->tables || collected_of(process)->awaits_rows)
		return;
	collected_of(process)->awaits_rows = charge_is_little(&process->payer)
						     ? vec_push(&unwinding->wanted, process->pid) == 0
						     : vec_push(&unwinding->later, process->pid) == 0;
}

/* One at a time, so that others come before the next. The rest moves up when half are taken, so that costs little. */
static void take_later(struct unwinding *unwinding)
{
	pid_t *items = unwinding->later.items;
	size_t taken = unwinding->later_taken + 1, rest = unwinding->later.len - taken;

	if (unwinding->wanted.len || !unwinding->later.len || vec_push(&unwinding->wanted, items[taken - 1]))
		return;
	unwinding->later_taken = taken;
	if (taken < rest)
		return;
	memmove(items, items + taken, rest * sizeof(*items));
	unwinding->later.len = rest;
	unwinding->later_taken = 0;
}

/*
 * Publishes the wanted processes after the first `waiting` ones, at least one of them. A process that needs the rows
 * that are being made joins the waiting ones. When these rows are finished, the waiting processes are tried again, in
 * the same order. So the first process gets all of its files in the end, however many files the others have.
 */
static void publish_wanted(struct unwinding *unwinding, struct process_table *processes, size_t waiting,
			   uint64_t until_ns)
{
	size_t next = waiting;

	while (next < unwinding->wanted.len && (next == waiting || clock_monotonic_ns() < until_ns)) {
		pid_t pid = unwinding->wanted.items[next++];
		struct process *process = process_find(processes, pid);

		if (process && unwinding_publish(unwinding, process, until_ns) == -EAGAIN)
			unwinding->wanted.items[waiting++] = pid;
		else if (process)
			collected_of(process)->awaits_rows = false;
	}
	unwinding->waiting = waiting;
	unwinding->wanted.len -= next - waiting;
	memmove(unwinding->wanted.items + waiting, unwinding->wanted.items + next,
		(unwinding->wanted.len - waiting) * sizeof(pid_t));
}

void unwinding_work(struct unwinding *unwinding, struct process_table *processes, uint64_t until_ns)
{
	uint64_t before_ns = charge_all_ns();
	bool is_making = false;

	is_making = make_more(unwinding, until_ns);
	unwinding->work_ns += charge_all_ns() - before_ns;
	take_later(unwinding);
	if (unwinding->wanted.len)
		publish_wanted(unwinding, processes, is_making ? unwinding->waiting : 0, until_ns);
}

void unwinding_step(struct unwinding *unwinding, struct process_table *processes, uint64_t now_ns)
{
	struct process *process;
	pid_t pid;

	if (!unwinding->tables || now_ns - unwinding->looked_ns < LOOK_NS)
		return;
	unwinding->looked_ns = now_ns;
	pid = unwind_tables_look(unwinding->tables, now_ns);
	process = pid ? process_find(processes, pid) : NULL;
	if (!process)
		return;
	collected_of(process)->published_version = 0;
	unwinding_want(unwinding, process);
}

void unwinding_read_maps(struct unwinding *unwinding, struct process *process)
{
	uint64_t min_age_ns = process_age_ns(process) < YOUNG_NS ? YOUNG_MIN_AGE_NS : MAPS_MIN_AGE_NS;

	if (unwinding->tables)
		process_refresh_maps(process, clock_monotonic_ns(), min_age_ns);
}

void unwinding_refresh(struct unwinding *unwinding, struct process *process)
{
	unwinding_read_maps(unwinding, process);
	unwinding_publish_now(unwinding, process);
}

void unwinding_forget(struct unwinding *unwinding, struct process *process)
{
	if (!unwinding->tables || !collected_of(process)->published_version)
		return;
	collected_of(process)->published_version = 0;
	unwind_tables_forget(unwinding->tables, process->pid);
}
