/* SPDX-License-Identifier: MIT */
/*
 * The walk in the handler, on this program's own stack, with the tables that the loader makes for it; also with tables
 * that a loader has left incomplete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/tables/unwinding.h"
#include "sample/walk.h" /* before sigsafe.h, which the files below include */

#include "hotspot/ring.c"
#include "safe_copy.c"
#include "jvm/tables.c"
#include "sample/walk.c"

#define DEEP 100
#define DEEP_BYTES 600 /* bytes of a frame: all frames together do not fit the window */

static struct process_table processes;
static struct unwinding unwinding;
static struct stay stay;
static struct agent_walk taken;
static struct stack_copy copied;
static uintptr_t called_itself; /* where take_deep() continues after its call of itself */

bool jvmstructs_is_committed(uintptr_t address, size_t bytes)
{
	return false;
}

static struct {
	uintptr_t sp, pc, fp;
} left_java; /* where the calling thread left Java */

bool jvmstructs_anchor(uintptr_t java_thread, struct frame_anchor *ret_anchor)
{
	*ret_anchor = (struct frame_anchor){&left_java.sp, &left_java.pc, &left_java.fp};
	return java_thread != 0;
}

bool jvmstructs_caller_anchor(uintptr_t wrapper, struct frame_anchor *ret_anchor)
{
	(void)wrapper, (void)ret_anchor;
	return false;
}

bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret_blob)
{
	(void)pc, (void)ret_blob;
	return false;
}

bool jvmstructs_is_nmethod(const char *name)
{
	return false;
}

static struct process *self(void)
{
	struct process *process = process_get(&processes, getpid(), 0);

	process_refresh_maps(process, clock_monotonic_ns(), 0);
	return process;
}

static int make_tables(void **state)
{
	struct unwind_tables *tables;
	const char *why;

	assert_int_equal(unwind_tables_open_file(&tables, 16u << 20), 0);
	unwinding_init(&unwinding, tables);
	process_table_init(&processes);
	taken.most_ns = NS_PER_SEC / 2;
	assert_int_equal(tables_map(&stay.tables, unwind_tables_fd(tables), unwind_tables_bytes(tables), &why), 0);
	return 0;
}

static int drop_tables(void **state)
{
	struct unwind_tables *tables = unwinding.tables;

	tables_unmap(&stay.tables);
	unwinding_release(&unwinding);
	unwind_tables_close(tables);
	process_table_release(&processes);
	return 0;
}

static void take(const ucontext_t *context)
{
	memset(&taken.sample, 0, sizeof(taken.sample));
	taken.sample.head.time_ns = clock_ns();
	walk_thread(&taken, &stay, &copied, context);
}

__attribute__((noinline)) static int take_deep(int calls)
{
	volatile char room[DEEP_BYTES];
	ucontext_t context;

	room[0] = (char)calls;
	if (!calls)
		called_itself = (uintptr_t)__builtin_return_address(0);
	if (calls)
		return take_deep(calls - 1) + room[0];
	getcontext(&context);
	take(&context);
	return room[0];
}

static uint32_t count_deep(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < taken.sample.user_depth; i++)
		count += taken.sample.stack[i] == called_itself;
	return count;
}

static void test_own_stack(void **state)
{
	unwinding_publish(&unwinding, self(), UINT64_MAX);
	take_deep(DEEP);
	assert_int_equal(taken.sample.walk_end, DUET_WALK_ENTRY);
	assert_int_equal(taken.sample.flags, DUET_SAMPLE_USER_REGS | DUET_SAMPLE_USER_COMPLETE);
	assert_int_equal(count_deep(), DEEP);
	assert_int_equal(taken.sample.guessed_depth, 0);
	assert_true(taken.calls_left > MAX_CALLS - 20);
	assert_int_equal(walk_bytes(&taken), sizeof(taken.sample) + taken.sample.user_depth * sizeof(uint64_t));
}

/* What is known to stay readable is neither copied nor read by system calls. */
static void test_trusted_stack(void **state)
{
	uint32_t depth;

	unwinding_publish(&unwinding, self(), UINT64_MAX);
	take_deep(DEEP);
	depth = taken.sample.user_depth;
	taken.own.low = (uintptr_t)__builtin_frame_address(0) - 2 * DEEP * (DEEP_BYTES + sizeof(ucontext_t));
	taken.own.high = (uintptr_t)*environ;
	take_deep(DEEP);
	taken.own.low = taken.own.high = 0;
	assert_int_equal(taken.sample.user_depth, depth);
	assert_int_equal(count_deep(), DEEP);
	assert_int_equal(taken.calls_left, MAX_CALLS);
}

/* The last frames follow the first ones, in order. */
static void test_deeper_than_a_record(void **state)
{
	uint64_t root[4];
	uint32_t deep;

	unwinding_publish(&unwinding, self(), UINT64_MAX);
	take_deep(3 * DUET_MAX_USER_STACK);
	deep = taken.sample.user_depth + taken.sample.left_out;
	assert_int_equal(taken.sample.walk_end, DUET_WALK_ENTRY);
	assert_int_equal(taken.sample.user_depth, DUET_MAX_USER_STACK);
	assert_true(deep > 3 * DUET_MAX_USER_STACK && deep < 3 * DUET_MAX_USER_STACK + 64);
	memcpy(root, taken.sample.stack + DUET_MAX_USER_STACK - 4, sizeof(root));
	take_deep(0);
	assert_memory_equal(root, taken.sample.stack + taken.sample.user_depth - 4, sizeof(root));
}

static uint64_t lane_bytes[2 << 17];

/* With all frames wanted, the middle ones are in the ring: each part is sent before the next one overwrites it. */
static void test_all_of_a_deep_stack(void **state)
{
	struct duet_ring_lane lane = {0};
	const int calls = 3 * DUET_MAX_USER_STACK + 100; /* the last part ends before their callers */
	uint32_t first = DUET_LEAF_FRAMES, deep = 0, twice;
	const uint64_t *at = lane_bytes;

	stay.ring.lanes[DUET_LANE_SAMPLE] =
		(struct duet_lane_view){&lane, (unsigned char *)lane_bytes, sizeof(lane_bytes) / 2};
	stay.java_depth = DUET_MAX_JAVA_DEPTH;
	unwinding_publish(&unwinding, self(), UINT64_MAX);
	take_deep(calls);
	stay.java_depth = 0;
	for (; at < lane_bytes + lane.head / sizeof(*at); first += DUET_ROOT_FRAMES) {
		const struct duet_ring_record *record = (const void *)at;
		const struct duet_frames_record *part = (const void *)(record + 1);

		assert_int_equal(record->type, DUET_AGENT_FRAMES);
		assert_int_equal(part->first, first);
		assert_int_equal(part->head.time_ns, taken.sample.head.time_ns);
		for (uint32_t i = 0; i < DUET_ROOT_FRAMES; i++)
			deep += part->stack[i] == called_itself;
		at += record->size / sizeof(*at);
	}
	twice = first - DUET_LEAF_FRAMES - taken.sample.left_out; /* this many are in the sample too */
	assert_true(twice < DUET_ROOT_FRAMES);
	assert_int_equal(count_deep() + deep - twice, calls);
}

/* Before the loader has published the tables, no walk is whole, and unknown code is reported to the loader. */
static void test_nothing_published(void **state)
{
	take_deep(3);
	assert_false(taken.sample.flags & DUET_SAMPLE_USER_COMPLETE);
	assert_true(taken.sample.flags & DUET_SAMPLE_UNKNOWN_CODE);
}

static void test_unreadable_stack(void **state)
{
	char *none = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucontext_t context;

	unwinding_publish(&unwinding, self(), UINT64_MAX);
	getcontext(&context);
	regs_set(&context, &(struct regs){(uintptr_t)take_deep, (uintptr_t)none + 4096, (uintptr_t)none + 8192, 0});
	take(&context);
	assert_int_equal(taken.sample.walk_end, DUET_WALK_UNREADABLE);
	regs_set(&context, &(struct regs){(uintptr_t)take_deep, UINTPTR_MAX - 15, UINTPTR_MAX - 7, 0});
	take(&context);
	assert_false(taken.sample.flags & DUET_SAMPLE_USER_COMPLETE);
	munmap(none, 65536);
}

/* ---- the tables ---- */

static void test_another_slice_is_noticed(void **state)
{
	const struct duet_unwind_mapping one = {.start = 4096, .end = 8192};
	struct duet_unwind_mapping found;
	struct tables_slice slice;

	assert_int_equal(tables_begin(&stay.tables).count, 0);
	assert_int_equal(unwind_tables_publish(unwinding.tables, 1, 0, &one, 1), 0);
	slice = tables_begin(&stay.tables);
	assert_true(tables_find_mapping(&stay.tables, &slice, 4096, &found) && found.end == 8192);
	assert_false(tables_find_mapping(&stay.tables, &slice, 8192, &found));
	assert_true(tables_unchanged(&stay.tables, &slice));
	assert_int_equal(unwind_tables_publish(unwinding.tables, 1, 0, &one, 1), 0);
	assert_false(tables_unchanged(&stay.tables, &slice));
	assert_true(tables_find_mapping(&stay.tables, &slice, 4096, &found)); /* still there, for a while */
}

/* A process that gets the file can read it, but not write it. */
static void test_file_is_read_only(void **state)
{
	int fd = unwind_tables_fd(unwinding.tables);

	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

struct bad_file {
	_Alignas(4096) struct duet_unwind_file head;
	_Alignas(4096) struct duet_unwind_row rows[8];
	_Alignas(4096) struct duet_unwind_page pages[2];
	_Alignas(4096) struct duet_unwind_module modules[2];
	_Alignas(4096) struct duet_unwind_mapping mappings[2];
};

static struct bad_file sound_file(void)
{
	return (struct bad_file){
		.head = {DUET_UNWIND_MAGIC, DUET_UNWIND_VERSION, 8, 2, 2, 2, 1, .slices = {{0}, {.mappings = 1}}},
		.pages = {{0, 8}},
		.modules = {{.pages = 1}},
		.mappings = {{.start = 0x1000, .end = 0x2000, .base = 0x1000}},
	};
}

/* NULL of the tables when they are refused. */
static struct tables map_bad(const struct bad_file *file, int seals, uint64_t bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct tables tables = {0};
	const char *why;

	assert_int_equal(pwrite(fd, file, sizeof(*file), 0), sizeof(*file));
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	(void)tables_map(&tables, fd, bytes, &why);
	close(fd);
	return tables;
}

static bool is_taken(const struct bad_file *file, int seals, uint64_t bytes)
{
	struct tables tables = map_bad(file, seals, bytes);
	bool is_mapped = tables.file != NULL;

	tables_unmap(&tables);
	return is_mapped;
}

static void test_bad_files_are_refused(void **state)
{
	struct bad_file file = sound_file();

	assert_true(is_taken(&file, F_SEAL_SHRINK, sizeof(file)));
	assert_false(is_taken(&file, 0, sizeof(file)));
	assert_false(is_taken(&file, F_SEAL_SHRINK, sizeof(file) - 4096));
	file.head.rows = UINT32_MAX;
	assert_false(is_taken(&file, F_SEAL_SHRINK, sizeof(file)));
	file = sound_file();
	file.head.version++;
	assert_false(is_taken(&file, F_SEAL_SHRINK, sizeof(file)));
}

/* Returns how many rows a lookup of this pc leads to. All of them must lie in the array. */
static uint32_t rows_of(const struct bad_file *file, uint64_t pc)
{
	struct tables tables = map_bad(file, F_SEAL_SHRINK, sizeof(*file));
	struct tables_slice slice = tables_begin(&tables);
	struct duet_unwind_mapping mapping;
	struct duet_unwind_page page;
	uint32_t count = 0;

	if (tables_find_mapping(&tables, &slice, pc, &mapping) &&
	    tables_find_page(&tables, mapping.module, pc - mapping.base, &page))
		for (uint32_t i = page.first; i != page.end && tables_row(&tables, i); i++)
			count++;
	tables_unmap(&tables);
	return count;
}

static void test_indices_are_bound(void **state)
{
	struct bad_file file = sound_file();

	assert_int_equal(rows_of(&file, 0x1010), 8);
	file.pages[0].end = UINT32_MAX;
	assert_int_equal(rows_of(&file, 0x1010), 8);
	file.modules[0].first_row = UINT32_MAX;
	assert_int_equal(rows_of(&file, 0x1010), 0);
	file.modules[0] = (struct duet_unwind_module){.first_page = UINT32_MAX, .pages = UINT32_MAX};
	assert_int_equal(rows_of(&file, 0x1010), 0);
	file.mappings[0].module = 2;
	assert_int_equal(rows_of(&file, 0x1010), 0);
	file.head.slices[1].mappings = 3;
	assert_int_equal(rows_of(&file, 0x1010), 0);
	file.head.slices[1] = (struct duet_unwind_process){.first = UINT32_MAX, .mappings = 2};
	assert_int_equal(rows_of(&file, 0x1010), 0);
}

static void take_caller(uintptr_t java_thread)
{
	memset(&taken.sample, 0, sizeof(taken.sample));
	taken.sample.head.time_ns = clock_ns();
	walk_caller(&taken, &stay, &copied, java_thread);
	assert_true(taken.sample.flags & DUET_SAMPLE_CALLED);
	assert_int_equal(taken.sample.user_depth, 0);
	assert_int_equal(walk_bytes(&taken), sizeof(taken.sample));
}

/* A thread of the JVM without Java frames has nothing to walk: its stack is whole. */
static void test_caller_without_java(void **state)
{
	left_java.sp = 0;
	take_caller(1);
	assert_true(taken.sample.flags & DUET_SAMPLE_WALKED);
	assert_int_equal(taken.sample.walk_end, DUET_WALK_ENTRY);
}

/* Without a thread, memory at the stack pointer, or a layout, the other witness is asked. */
static void test_caller_that_cannot_be_walked(void **state)
{
	uint64_t words[] = {0x1234, 0};

	take_caller(0);
	assert_false(taken.sample.flags & (DUET_SAMPLE_WALKED | DUET_SAMPLE_USER_COMPLETE));
	left_java.sp = 8;
	left_java.pc = 0;
	take_caller(1);
	assert_false(taken.sample.flags & (DUET_SAMPLE_WALKED | DUET_SAMPLE_USER_COMPLETE));
	left_java.sp = (uintptr_t)&words[1];
	take_caller(1);
	assert_false(taken.sample.flags & (DUET_SAMPLE_WALKED | DUET_SAMPLE_USER_COMPLETE));
	assert_int_equal(taken.sample.user_pc, 0x1234); /* the word below the stack pointer */
	assert_int_equal(taken.sample.user_sp, left_java.sp);
}

static uint64_t counter; /* address of the number of safepoints */

/* As a walk of this time begins. */
static bool is_known(uint64_t method, uint64_t time_ns)
{
	begin(&taken, &stay, &copied);
	taken.java.layout.safepoints = counter;
	taken.sample.head.time_ns = time_ns;
	taken.java.const_at = taken.java.found_method = 0;
	return walk_memory_known(&taken.java, method);
}

/* What was found out about a method holds until the next safepoint, and for 10 ms. */
static void test_known_methods(void **state)
{
	uint64_t safepoints = 7, now_ns = clock_ns(), method = 0x7f0000001230;

	counter = (uintptr_t)&safepoints;
	assert_false(is_known(method, now_ns));
	taken.java.const_at = 0x1000;
	taken.java.found_method = 0x2000;
	walk_memory_know(&taken.java, method);
	assert_true(is_known(method, now_ns + 9000000));
	assert_int_equal(taken.java.const_at, 0x1000);
	assert_int_equal(taken.java.found_method, 0x2000);
	assert_false(is_known(method + 8, now_ns));
	assert_false(is_known(0, now_ns));
	assert_false(is_known(method, now_ns + 10000000));
	assert_false(is_known(method, now_ns - 1));
	safepoints++;
	assert_false(is_known(method, now_ns));
	counter = 0; /* the JVM has none */
	assert_false(is_known(method, now_ns));
	walk_memory_know(&taken.java, method);
	assert_false(is_known(method, now_ns));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_tables, drop_tables)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_own_stack),
		CASE(test_known_methods),
		CASE(test_trusted_stack),
		CASE(test_deeper_than_a_record),
		CASE(test_all_of_a_deep_stack),
		CASE(test_nothing_published),
		CASE(test_unreadable_stack),
		CASE(test_another_slice_is_noticed),
		cmocka_unit_test(test_caller_without_java),
		cmocka_unit_test(test_caller_that_cannot_be_walked),
		CASE(test_file_is_read_only),
		cmocka_unit_test(test_bad_files_are_refused),
		cmocka_unit_test(test_indices_are_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
