/* SPDX-License-Identifier: MIT */
#include "collect/sleepers/sleeper_walk.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "duet_config.h"
#include "duet_jvm.h"
#include "duet_unwind.h"
#include "proc/process.h"

#include "duet.skel.h"

#define TICKS_NS 10000000 /* USER_HZ is 100 */
#define LONG_NS (50 * NS_PER_MS) /* longest walk: reading a page of memory that is not cached takes 50 us */

static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address);
static const struct duet_unwind_row *walk_row(const void *at, uint32_t index);

#include "walk/java.h"
#include "walk/native.h"
#include "walk/virtual.h"

/* A BPF array map, mapped into our memory. */
struct table {
	void *at;
	size_t entries;
	size_t bytes;
};

struct sleeper_walker {
	struct unwind_cursor cursor;
	struct walk_java java;
	uint32_t walked;
	uint32_t user_depth;
	uint32_t ids[DUET_MAX_USER_STACK];
	struct duet_frames_record part;
	uint64_t began_ns;
	struct duet_unwind_process process; /* the process's slice of the mappings */
	const struct duet_unwind_mapping *mapping; /* the mapping found last */
	struct foreign foreign;
	const struct duet_bpf *bpf;
	struct table rows, pages, modules, mappings;
	union { /* last, because of its flexible member */
		struct duet_sample sample;
		uint64_t room[sizeof(struct duet_sample) / 8 + DUET_MAX_STACK + DUET_MAX_USER_STACK];
	};
};

static struct sleeper_walker *walker_now; /* the walk's functions that read get no other pointer to the walker */

/* ---- what the walk reads ---- */

static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address)
{
	return foreign_read(&walker_now->foreign, to, bytes, address);
}

static const struct duet_unwind_row *walk_row(const void *at, uint32_t index)
{
	const struct duet_unwind_row *rows = walker_now->rows.at;

	return index < walker_now->rows.entries ? &rows[index] : NULL;
}

static const struct duet_unwind_mapping *walk_mapping(const void *at, uint32_t index)
{
	const struct duet_unwind_mapping *mappings = walker_now->mappings.at;

	return index < walker_now->mappings.entries ? &mappings[index] : NULL;
}

/* Marks the file as used, as BPF does. */
static const struct duet_unwind_module *walk_module(const void *at, uint32_t index)
{
	struct duet_unwind_module *modules = walker_now->modules.at;

	if (index >= walker_now->modules.entries)
		return NULL;
	modules[index].used = 1;
	return &modules[index];
}

static const struct duet_unwind_page *walk_page(const void *at, uint32_t index)
{
	const struct duet_unwind_page *pages = walker_now->pages.at;

	return index < walker_now->pages.entries ? &pages[index] : NULL;
}

#include "walk/tables.h"

static const struct duet_unwind_row *walk_look_up(struct sleeper_walker *walker, enum duet_code *ret_code)
{
	uint64_t pc = walker->cursor.pc - walker->cursor.is_return;
	const struct duet_unwind_process *process = &walker->process;

	if (!walker->mapping || !walk_is_inside(walker->mapping, pc))
		walker->mapping = walk_find_mapping(&walker->cursor, process->first, process->mappings, pc);
	if (!walker->mapping) {
		walker->sample.flags |= walk_unmapped_flag(&walker->cursor);
		return NULL;
	}
	*ret_code = (enum duet_code)walker->mapping->code;
	return walk_find_row(&walker->cursor, walker->mapping, pc);
}

static bool walk_takes_long(const struct sleeper_walker *walker)
{
	return clock_monotonic_ns() - walker->began_ns > LONG_NS;
}

#define WALK struct sleeper_walker
#define walk_most(walker) (walker)->user_depth
#define walk_keeps_all(walker) false
#define walk_emit(walker) (void)0
#define walk_copy(to, bytes, from) memcpy(to, from, bytes)

#include "walk/loop.h"

/* ---- opening ---- */

static bool map_table(struct table *table, const struct bpf_map *map)
{
	table->entries = bpf_map__max_entries(map);
	table->bytes = table->entries * bpf_map__value_size(map);
	table->at = mmap(NULL, table->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (table->at == MAP_FAILED)
		table->at = NULL;
	return table->at != NULL;
}

static void unmap_table(struct table *table)
{
	if (table->at)
		munmap(table->at, table->bytes);
}

struct sleeper_walker *sleeper_walker_open(const struct duet_bpf *bpf, uint32_t user_depth)
{
	struct sleeper_walker *walker = calloc(1, sizeof(*walker));

	if (!walker)
		return NULL;
	walker->bpf = bpf;
	walker->user_depth = user_depth;
	if (map_table(&walker->rows, bpf->maps.unwind_rows) && map_table(&walker->pages, bpf->maps.unwind_pages) &&
	    map_table(&walker->modules, bpf->maps.unwind_modules) &&
	    map_table(&walker->mappings, bpf->maps.unwind_mappings))
		return walker;
	sleeper_walker_close(walker);
	return NULL;
}

void sleeper_walker_close(struct sleeper_walker *walker)
{
	if (!walker)
		return;
	foreign_close(&walker->foreign);
	unmap_table(&walker->rows);
	unmap_table(&walker->pages);
	unmap_table(&walker->modules);
	unmap_table(&walker->mappings);
	free(walker);
}

/* ---- one thread ---- */

static bool look_up(const struct bpf_map *map, uint32_t pid, void *ret)
{
	return !bpf_map_lookup_elem(bpf_map__fd(map), &pid, ret);
}

/* Reads what BPF knows of the process now: its mappings, and its JVM if it has one. */
static void begin_process(struct sleeper_walker *walker, const struct charge *charge, const struct duet_sample *sample)
{
	uint64_t start_ticks = sample->start_ns / TICKS_NS;
	struct duet_jvm_entry entry;

	walker->mapping = NULL;
	memset(&walker->java.layout, 0, sizeof(walker->java.layout));
	if (!look_up(walker->bpf->maps.unwind_processes, sample->head.tgid, &walker->process) ||
	    walker->process.start_ticks != start_ticks)
		walker->process = (struct duet_unwind_process){0};
	if (look_up(walker->bpf->maps.jvm_layouts, sample->head.tgid, &entry) && entry.start_ticks == start_ticks)
		walker->java.layout = entry.layout;
	foreign_open(&walker->foreign, charge);
}

static uint16_t jvm_flag(const struct sleeper_walker *walker, const struct duet_sample *sample)
{
	struct duet_jvm_target target;

	return look_up(walker->bpf->maps.jvms, sample->head.tgid, &target) &&
			       target.start_ticks == sample->start_ns / TICKS_NS
		       ? DUET_SAMPLE_JVM
		       : 0;
}

static void walk_one(struct sleeper_walker *walker, const struct duet_sleeper *sleeper, uint16_t flags)
{
	memcpy(&walker->sample, &sleeper->sample, sleeper->sample.head.size);
	walker->sample.flags |= flags;
	if (!(sleeper->sample.flags & DUET_SAMPLE_USER_REGS))
		return;
	walker->cursor = (struct unwind_cursor){
		.pc = sleeper->pc, .sp = sleeper->sp, .fp = sleeper->fp, .lr = sleeper->lr, .has_lr = 1};
	memcpy(walker->java.regs, sleeper->regs, sizeof(walker->java.regs));
	walker->java.thread = walk_java_owns(&walker->java, sleeper->pc) ? sleeper->regs[DUET_FRAME_THREAD] : 0;
	walk_java_begin(&walker->java);
	walker->began_ns = clock_monotonic_ns();
	walk_all(walker);
	if (walker->java.layout.call_stub_return)
		virtual_find(&walker->java.layout, walker->java.thread, walker->java.thread_at,
			     &walker->sample.virtual_thread);
}

/* Returns a copy of the sample as a record: the ids follow the frames. */
static struct sleeper_walked *copy_record(const struct sleeper_walker *walker, uint64_t switches)
{
	const struct duet_sample *sample = &walker->sample;
	size_t frames = sizeof(*sample) + (sample->kernel_depth + sample->user_depth) * sizeof(sample->stack[0]);
	size_t ids = (sample->id_depth + 1u) / 2 * sizeof(uint64_t);
	struct sleeper_walked *walked = malloc(offsetof(struct sleeper_walked, sample) + frames + ids);

	if (!walked)
		return NULL;
	walked->switches = switches;
	walked->payer = walker->foreign.charge->payer;
	walked->is_reported = false;
	memcpy(&walked->sample, sample, frames);
	if (ids) /* the last one is padding if their number is odd */
		memset((char *)&walked->sample + frames + ids - sizeof(uint64_t), 0, sizeof(uint64_t));
	memcpy((char *)&walked->sample + frames, walker->ids, sample->id_depth * sizeof(walker->ids[0]));
	walked->sample.head.size = (uint32_t)(frames + ids);
	return walked;
}

/* Reads the first of these threads' stacks. Returns how many. */
static size_t read_stacks(struct sleeper_walker *walker, const struct duet_sleeper *const *sleepers, size_t count)
{
	uint64_t addresses[FOREIGN_STACKS];

	if (count > FOREIGN_STACKS)
		count = FOREIGN_STACKS;
	for (size_t i = 0; i < count; i++)
		addresses[i] = sleepers[i]->sp;
	return foreign_read_stacks(&walker->foreign, addresses, count);
}

size_t sleeper_walk(struct sleeper_walker *walker, const struct charge *charge,
		    const struct duet_sleeper *const *sleepers, size_t count, sleeper_keep keep, void *context)
{
	uint16_t flags = jvm_flag(walker, &sleepers[0]->sample);
	size_t done = 0, part = 0, left = 0;

	begin_process(walker, charge, &sleepers[0]->sample);
	walker_now = walker;
	do {
		if (!left)
			left = part = read_stacks(walker, sleepers + done, count - done);
		walker->foreign.stack = part - left;
		walk_one(walker, sleepers[done], flags);
		keep(context, sleepers[done], copy_record(walker, sleepers[done]->switches));
		done++;
		left--;
	} while (done < count && !charge_slice_is_over(charge));
	walker_now = NULL;
	return done;
}

#define PAGE 4096u /* the smallest page size of any supported kernel */
/*
 * Bytes of each stack that are read at once: 20 to 40 frames, which is what waiting threads of a JVM have. Once stacks
 * of a process have been walked, it is what the deepest of them has needed.
 */
#define STACK_BYTES 3072u
#define STACK_BYTES_LEAST 256u
#define STACK_BYTES_STEP 128u
#define PART_BYTES (64u << 10) /* of all stacks that are read at once: what one message of the helper holds */
#define PAGES_AT_ONCE (PART_BYTES / (PAGE + sizeof(struct piece))) /* of a deep stack */
#define READS_MAX 4096u /* most pages of one process: 16 MB */
#define ADDRESS_CHARS 17 /* characters of an address in a task, with the blank */
_Static_assert(FOREIGN_STACKS * ADDRESS_CHARS < PATH_MAX, "a task is as long as a path");

/* The bytes that could be read come first, then zeros. */
struct piece {
	uint64_t bytes;
	unsigned char data[];
};

/* ---- in the helper ---- */

/* Pieces of memory to be read, in the order of the answer. */
struct pieces {
	uint64_t addresses[FOREIGN_STACKS];
	size_t count;
	size_t bytes; /* of each */
	char *room;
};

static size_t parse_addresses(const char *list, uint64_t *addresses)
{
	size_t count = 0;
	char *next;

	for (const char *at = list; count < FOREIGN_STACKS; at = next) {
		addresses[count] = strtoull(at, &next, 16);
		if (next == at)
			break;
		count++;
	}
	return count;
}

static struct piece *piece_in(const struct pieces *pieces, size_t index)
{
	return (void *)(pieces->room + index * (sizeof(struct piece) + pieces->bytes));
}

/*
 * Reads pieces from this one on with one system call, which ends at the first page that cannot be read. Returns the
 * index of the first piece that it has not come to.
 */
static size_t read_from(pid_t pid, const struct pieces *pieces, size_t first)
{
	struct iovec local[FOREIGN_STACKS], remote[2 * FOREIGN_STACKS]; /* a piece is in one or two pages */
	size_t next, got;
	ssize_t result;

	for (size_t i = first; i < pieces->count; i++) {
		uint64_t address = pieces->addresses[i];
		size_t in_page = PAGE - address % PAGE < pieces->bytes ? PAGE - address % PAGE : pieces->bytes;
		struct iovec *parts = &remote[2 * (i - first)];

		local[i - first] = (struct iovec){piece_in(pieces, i)->data, pieces->bytes};
		parts[0] = (struct iovec){(void *)(uintptr_t)address, in_page};
		parts[1] = (struct iovec){(void *)(uintptr_t)(address + in_page), pieces->bytes - in_page};
	}
	next = pieces->count - first;
	result = process_vm_readv(pid, local, next, remote, 2 * next, 0);
	got = result > 0 ? (size_t)result : 0;
	for (next = first; next < pieces->count; got -= pieces->bytes) {
		struct piece *piece = piece_in(pieces, next++);

		piece->bytes = got < pieces->bytes ? got : pieces->bytes;
		if (piece->bytes < pieces->bytes)
			break;
	}
	return next;
}

/* `path` lists addresses, each of a piece of `number` bytes, at most PAGE. */
static int read_pieces(const struct helper_task *task, struct helper_answer *answer)
{
	struct pieces pieces = {.bytes = task->number <= PAGE ? task->number : PAGE};
	size_t size;

	pieces.count = parse_addresses(task->path, pieces.addresses);
	size = pieces.count * (sizeof(struct piece) + pieces.bytes);
	if (!buf_reserve(&answer->text, size))
		return -ENOMEM;
	pieces.room = answer->text.data;
	memset(pieces.room, 0, size);
	answer->text.len = size;
	for (size_t next = 0; next < pieces.count;)
		next = read_from(task->charge->living, &pieces, next);
	return 0;
}

/* ---- in the loader ---- */

static int ask(const struct foreign *foreign, const uint64_t *addresses, size_t count, size_t bytes,
	       struct helper_answer *answer)
{
	char list[FOREIGN_STACKS * ADDRESS_CHARS + 1];
	const struct helper_task task = {
		.work = read_pieces, .charge = foreign->charge, .fd = -1, .path = list, .number = bytes};
	int err;

	for (size_t i = 0; i < count; i++)
		snprintf(list + i * ADDRESS_CHARS, ADDRESS_CHARS + 1, "%16llx ", (unsigned long long)addresses[i]);
	list[count * ADDRESS_CHARS] = '\0';
	err = helper_run(&task, answer);
	return !err && answer->text.len != count * (sizeof(struct piece) + bytes) ? -EPROTO : err;
}

static void forget_stacks(struct foreign *foreign)
{
	if (foreign->stack_count)
		helper_answer_release(&foreign->answer);
	foreign->stack_count = foreign->stack = 0;
}

void foreign_open(struct foreign *foreign, const struct charge *charge)
{
	map_release_owned(&foreign->pages);
	forget_stacks(foreign);
	foreign->charge = charge;
	foreign->deepest = 0;
	foreign->next_page = 0;
	foreign->reads_left = READS_MAX;
}

void foreign_close(struct foreign *foreign)
{
	foreign_open(foreign, NULL);
}

static size_t bytes_of_stacks(const struct foreign *foreign)
{
	size_t bytes = foreign->deepest ? foreign->deepest : STACK_BYTES;

	bytes = (bytes + STACK_BYTES_STEP - 1) / STACK_BYTES_STEP * STACK_BYTES_STEP;
	return bytes < STACK_BYTES_LEAST ? STACK_BYTES_LEAST : bytes;
}

size_t foreign_read_stacks(struct foreign *foreign, const uint64_t *addresses, size_t count)
{
	size_t bytes = bytes_of_stacks(foreign), most = PART_BYTES / (bytes + sizeof(struct piece));

	forget_stacks(foreign);
	if (most > FOREIGN_STACKS)
		most = FOREIGN_STACKS;
	if (count > most)
		count = most;
	if (!foreign->reads_left)
		return count;
	if (ask(foreign, addresses, count, bytes, &foreign->answer)) {
		helper_answer_release(&foreign->answer);
		foreign->reads_left = 0; /* the process has ended, or may not be read */
		return count;
	}
	memcpy(foreign->stacks, addresses, count * sizeof(*addresses));
	foreign->stack_count = count;
	foreign->stack_bytes = bytes;
	return count;
}

static bool read_stack(struct foreign *foreign, void *to, size_t bytes, uint64_t address)
{
	const struct piece *piece;
	uint64_t offset;

	if (foreign->stack >= foreign->stack_count)
		return false;
	piece = (const void *)(foreign->answer.text.data +
			       foreign->stack * (sizeof(*piece) + foreign->stack_bytes));
	offset = address - foreign->stacks[foreign->stack];
	if (offset < STACK_BYTES && offset + bytes <= STACK_BYTES && offset + bytes > foreign->deepest)
		foreign->deepest = offset + bytes;
	if (piece->bytes > foreign->stack_bytes || offset > piece->bytes || piece->bytes - offset < bytes)
		return false;
	memcpy(to, piece->data + offset, bytes);
	return true;
}

static void keep_page(struct foreign *foreign, uint64_t page, const char *bytes)
{
	struct piece *copy = NULL;

	if (!map_get_ptr(&foreign->pages, page))
		copy = buf_duplicate(bytes, sizeof(*copy) + PAGE);
	if (copy && map_put_ptr(&foreign->pages, page, copy) < 0)
		free(copy);
}

/* Returns a page's bytes, or NULL. If it follows the last one that was read, reads those that follow it as well. */
static struct piece *fetch_page(struct foreign *foreign, uint64_t page)
{
	size_t count = page == foreign->next_page ? PAGES_AT_ONCE : 1;
	uint64_t addresses[PAGES_AT_ONCE];
	struct helper_answer answer;

	if (count > foreign->reads_left)
		count = foreign->reads_left;
	if (!count)
		return NULL;
	for (size_t i = 0; i < count; i++)
		addresses[i] = (page + i) * PAGE;
	foreign->reads_left -= count;
	foreign->next_page = page + count;
	if (ask(foreign, addresses, count, PAGE, &answer))
		count = foreign->reads_left = 0;
	for (size_t i = 0; i < count; i++)
		keep_page(foreign, page + i, answer.text.data + i * (sizeof(struct piece) + PAGE));
	helper_answer_release(&answer);
	return map_get_ptr(&foreign->pages, page);
}

int foreign_read(struct foreign *foreign, void *to, size_t bytes, uint64_t address)
{
	unsigned char *next = to;

	if (read_stack(foreign, to, bytes, address))
		return 0;
	while (bytes) {
		uint64_t page = address / PAGE, offset = address % PAGE;
		size_t part = bytes < PAGE - offset ? bytes : PAGE - offset;
		const struct piece *piece = map_get_ptr(&foreign->pages, page);

		if (!piece)
			piece = fetch_page(foreign, page);
		if (!piece || piece->bytes > PAGE || offset + part > piece->bytes)
			return -1;
		memcpy(next, piece->data + offset, part);
		next += part;
		address += part;
		bytes -= part;
	}
	return 0;
}
