/* SPDX-License-Identifier: MIT */
/* Which inlined method code between two entries belongs to: small pieces of code whose source is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/scopes.h"

#ifdef __x86_64__

enum { OUTER = 1, FIRST, SECOND, THIRD };

#define FRAMES 7 /* of the entries */
#define MOST_FRAMES 12

static struct duet_java_frame frames[MOST_FRAMES] = {
	{.method = FIRST, .bci = 3}, {.method = OUTER, .bci = 10}, /* 0 */
	{.method = SECOND, .bci = 5}, {.method = OUTER, .bci = 20}, /* 2 */
	{.method = OUTER, .bci = 30}, /* 4 */
	{.method = FIRST, .bci = 8}, {.method = OUTER, .bci = 10}, /* 5 */
};

#define NOPS "\x90\x90\x90\x90"
#define CALL "\xe8\x00\x01\x00\x00"

/* outer() { first(); second(); third(); }, the first two inlined, with a trap at the end each */
static const char code[] = "\x0f\x84\x1b\x00\x00\x00" /* 0: to 33, the trap of first() */
			   NOPS /* 6 */
			   CALL /* 10: a stub, without an entry */
			   "\x90" NOPS /* 15 */
			   "\x0f\x85\x0c\x00\x00\x00" /* 20: to 38, the trap of second() */
			   "\x90" /* 26 */
			   CALL /* 27: third() */
			   "\xc3" /* 32 */
			   CALL "\xbe\xc6\xff\xff\xff" /* 33: mov esi, the request of the next trap */
			   CALL; /* 43 */

static const struct duet_code_pc entries[] = {
	{.offset = 32, .frame = 4, .depth = 1, .flags = SCOPES_SAFEPOINT},
	{.offset = 38, .frame = 0, .depth = 2, .flags = SCOPES_SAFEPOINT},
	{.offset = 48, .frame = 2, .depth = 2, .flags = SCOPES_SAFEPOINT},
};

static uint64_t silent; /* a method whose byte code calls nothing */

static enum scopes_calls calls(const struct duet_java_frame *frame)
{
	return frame->method == silent ? SCOPES_CALLS_NOTHING : SCOPES_CALLS_RUNTIME;
}

static int kind; /* of all stubs */
static struct stub_callers ways; /* to them */

static int stub_at(uint64_t address)
{
	return address ? kind : 0;
}

static uint64_t leads_too; /* another method, whose byte code leads to a stub */

static void find_callers(struct stub_callers *search, uint64_t method, int32_t begin, int32_t end)
{
	search->ways += leads_too && method == leads_too;
	if (method != ways.way[0].method || begin > ways.way[0].bci || end < ways.way[0].bci)
		return;
	memcpy(search->way, ways.way, sizeof(ways.way));
	search->depth = ways.depth;
	search->ways += ways.ways;
}

static uint32_t find_classes(const struct scopes *of, uintptr_t classes[SCOPES_CLASSES])
{
	(void)of, (void)classes;
	return 0;
}

static struct scopes scopes = {
	.calls = calls,
	.stub_at = stub_at,
	.find_classes = find_classes,
	.find_callers = find_callers,
	.code = (const uint8_t *)code,
	.code_bytes = sizeof(code) - 1,
	.pcs = entries,
	.pc_count = 3,
	.frames = frames,
	.frame_count = FRAMES,
	.most_frames = MOST_FRAMES,
};

static const struct duet_code_pc *find(const struct duet_code_pc *table, uint32_t count, uint32_t offset)
{
	for (uint32_t i = 0; i < count; i++)
		if (table[i].offset >= offset)
			return &table[i];
	return NULL;
}

static void expect_flags(uint32_t offset, uint64_t method, uint32_t flags)
{
	uint32_t count;
	struct duet_code_pc *table = scopes_estimate(&scopes, 100, &count);
	const struct duet_code_pc *found = table ? find(table, count, offset) : NULL;

	assert_non_null(found);
	assert_int_equal(frames[found->frame].method, method);
	assert_int_equal(found->flags, flags);
	free(table);
}

static void expect(uint32_t offset, uint64_t method, bool is_estimated)
{
	expect_flags(offset, method, is_estimated ? DUET_PC_ESTIMATED : 0);
}

/* HotSpot's own choice, the next entry, would be third()'s for all code before it. */
static void test_after_a_check(void **state)
{
	expect(1, FIRST, true); /* the check itself: the compiler may have moved it */
	expect(7, SECOND, true); /* right before the next check */
	expect(15, FIRST, true); /* the stub's return address */
	expect(20, SECOND, true);
	expect(26, SECOND, true);
	expect(27, OUTER, true); /* right before the call, but also after the check */
}

static void test_entries_stay(void **state)
{
	expect(32, OUTER, false);
	expect(38, FIRST, false);
	expect(48, SECOND, false);
}

/* Behind a branch, the check after it is nearer than the one before. */
static void test_behind_a_branch(void **state)
{
	static const char branches[] = "\x0f\x84\x0c\x00\x00\x00" /* 0: to 18, the trap of first() */
				       "\x74\x03\x90" /* 6: to 11 */
				       "\x74\x00" /* 9: to 11 */
				       "\x0f\x85\x06\x00\x00\x00\xc3" /* 11: to 23, the trap of second() */
				       CALL "\xbe\xc6\xff\xff\xff" CALL; /* 18, 28 */
	static const struct duet_code_pc traps[] = {
		{.offset = 23, .frame = 0, .depth = 2, .flags = SCOPES_SAFEPOINT},
		{.offset = 33, .frame = 2, .depth = 2, .flags = SCOPES_SAFEPOINT},
	};

	scopes.code = (const uint8_t *)branches;
	scopes.code_bytes = sizeof(branches) - 1;
	scopes.pcs = traps;
	scopes.pc_count = 2;
	expect(8, FIRST, true);
	expect(9, SECOND, true);
	scopes.code = (const uint8_t *)code;
	scopes.code_bytes = sizeof(code) - 1;
	scopes.pcs = entries;
	scopes.pc_count = 3;
}

/* A loop that no entry is in, nor on a way from it or to it: HotSpot's own choice would be first()'s. */
static void test_on_no_way(void **state)
{
	static const char loop[] = "\x90\xeb\xfd" /* 0: to 0 */
				   CALL /* 3: what first() calls */
				   "\x90\xeb\xfd"; /* 8: to 8, behind the last entry, but after the call */
	static const struct duet_code_pc one[] = {{.offset = 8, .frame = 0, .depth = 2, .flags = SCOPES_SAFEPOINT}};
	static const struct duet_code_pc itself[] = {{.offset = 8, .frame = 4, .depth = 1, .flags = SCOPES_SAFEPOINT}};

	scopes.code = (const uint8_t *)loop;
	scopes.code_bytes = sizeof(loop) - 1;
	scopes.pcs = one;
	scopes.pc_count = 1;
	expect_flags(1, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	expect_flags(8, FIRST, 0);
	scopes.pcs = itself;
	expect(1, OUTER, false); /* nothing is inlined, as far as is known */
	scopes.code = (const uint8_t *)code;
	scopes.code_bytes = sizeof(code) - 1;
	scopes.pcs = entries;
	scopes.pc_count = 3;
}

/* Between two checks of one method there is little doubt; but a call may come from a method without a check. */
static void test_between_equal_checks(void **state)
{
	static const struct duet_code_pc equal[] = {
		{.offset = 32, .frame = 4, .depth = 1, .flags = SCOPES_SAFEPOINT},
		{.offset = 38, .frame = 0, .depth = 2, .flags = SCOPES_SAFEPOINT},
		{.offset = 48, .frame = 5, .depth = 2, .flags = SCOPES_SAFEPOINT}, /* at another bci */
	};

	scopes.pcs = equal;
	expect(7, FIRST, true);
	expect(15, FIRST, true);
	expect(16, FIRST, true);
	scopes.pcs = entries;
}

/* A scope whose byte code calls nothing has not made the call. */
static void test_calls_of_byte_code(void **state)
{
	silent = FIRST;
	expect(15, SECOND, true); /* the next check's */
	expect(33 + 5, FIRST, false); /* a safepoint is certain */
	silent = 0;
}

static enum scopes_calls calls_nothing(const struct duet_java_frame *frame)
{
	return SCOPES_CALLS_NOTHING;
}

static enum scopes_calls calls_methods(const struct duet_java_frame *frame)
{
	return SCOPES_CALLS_METHOD;
}

/* If neither scope calls anything, what they have in common has called something unknown. */
static void test_unknown_caller(void **state)
{
	scopes.calls = calls_nothing;
	expect_flags(15, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	scopes.calls = calls;
}

static enum scopes_calls calls_outside(const struct duet_java_frame *frame)
{
	return frame->method == OUTER ? SCOPES_CALLS_RUNTIME : SCOPES_CALLS_NOTHING;
}

/* The entry that comes next in memory, third()'s, has not made the call of a stub before the next check. */
static void test_entry_on_no_way(void **state)
{
	scopes.calls = calls_outside;
	expect_flags(15, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	scopes.calls = calls;
}

/* What is called as a method is no stub; a trap's entry names a call that may be replaced by a stub. */
static void test_calls_of_methods(void **state)
{
	scopes.calls = calls_methods;
	expect(15, SECOND, true); /* the call at 33 is of a method, as there is no request before it */
	scopes.calls = calls;
}

/* The byte code leads to a method without an entry; two ways, or none, are no answer. */
static void test_known_callers(void **state)
{
	struct duet_code_pc *table;
	uint32_t count;

	kind = 1;
	ways = (struct stub_callers){.ways = 1, .depth = 2, .way = {{.method = OUTER, .bci = 15}, {.method = THIRD}}};
	table = scopes_estimate(&scopes, 100, &count);
	assert_non_null(table);
	assert_int_equal(find(table, count, 15)->depth, 2);
	assert_int_equal(find(table, count, 15)->flags, 0);
	assert_int_equal(frames[FRAMES].method, THIRD);
	assert_int_equal(frames[FRAMES + 1].method, OUTER);
	assert_int_equal(frames[FRAMES + 1].bci, 15);
	assert_int_equal(scopes.frame_count, FRAMES + 2); /* once, for all calls there */
	free(table);
	scopes.frame_count = FRAMES;
	ways.ways = 2; /* what they have in common */
	expect_flags(15, THIRD, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	scopes.frame_count = FRAMES;
	ways.depth = 0;
	expect_flags(15, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	ways.ways = 0;
	expect_flags(15, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	kind = 0;
}

/* Code without safepoints has no entries: one stands for the method. */
static void test_nothing_recorded(void **state)
{
	static const struct duet_code_pc itself = {
		.offset = sizeof(code) - 1, .frame = 4, .depth = 1, .flags = SCOPES_NOTHING};

	scopes.pcs = &itself;
	scopes.pc_count = 1;
	kind = 1;
	ways = (struct stub_callers){.ways = 1, .depth = 2, .way = {{.method = OUTER, .bci = 15}, {.method = THIRD}}};
	expect(15, THIRD, false);
	expect(7, OUTER, true);
	scopes.pcs = entries;
	scopes.pc_count = 3;
	scopes.frame_count = FRAMES;
	kind = 0;
}

/* Of two ways, that from the method of the check right before the call is it. */
static void test_right_after_a_check(void **state)
{
	kind = 1;
	leads_too = SECOND;
	ways = (struct stub_callers){.ways = 1, .depth = 1, .way = {{.method = FIRST, .bci = 4}}};
	expect(15, FIRST, false);
	scopes.frame_count = FRAMES;
	leads_too = 0;
	kind = 0;
}

/* One entry is known, after the call: what its method does before it, and else anything, has called the stub. */
static void test_before_the_only_entry(void **state)
{
	scopes.pc_count = 1;
	kind = 1;
	ways = (struct stub_callers){.ways = 1, .depth = 2, .way = {{.method = OUTER, .bci = 15}, {.method = THIRD}}};
	expect(15, THIRD, false);
	scopes.frame_count = FRAMES;
	ways.way[0].bci = 40;
	expect(15, THIRD, false);
	ways.ways = 2;
	expect_flags(15, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	kind = 0;
	scopes.pc_count = 3;
	scopes.frame_count = FRAMES;
}

/* Rare code lies behind the last entry and jumps back: its call has the scope of what comes after. */
static void test_behind_the_last_entry(void **state)
{
	static const char rare[] = "\x0f\x84\x06\x00\x00\x00" /* 0: to 12 */
				   CALL "\xc3" /* 6: second() */
				   CALL "\xeb\xf3" /* 12: a stub; back to 6 */
				   CALL "\xc3"; /* 19: no way leads to an entry */
	static const struct duet_code_pc one[] = {{.offset = 11, .frame = 2, .depth = 2, .flags = SCOPES_SAFEPOINT}};
	struct duet_code_pc *table;
	uint32_t count;

	scopes.code = (const uint8_t *)rare;
	scopes.code_bytes = sizeof(rare) - 1;
	scopes.pcs = one;
	scopes.pc_count = 1;
	expect(17, SECOND, true);
	scopes.calls = calls_nothing;
	expect_flags(17, SECOND, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	table = scopes_estimate(&scopes, 100, &count);
	assert_non_null(table);
	for (uint32_t i = 0; i + 1 < count; i++)
		assert_true(table[i].depth == 2 && table[i].frame == 2);
	assert_int_equal(table[count - 1].offset, 25);
	assert_int_equal(table[count - 1].depth, 1);
	assert_int_equal(table[count - 1].flags, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	free(table);
	kind = 1; /* of a known stub, whose caller is not found */
	ways.ways = 0;
	expect_flags(24, OUTER, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	kind = 0;
	scopes.calls = calls;
	scopes.code = (const uint8_t *)code;
	scopes.code_bytes = sizeof(code) - 1;
	scopes.pcs = entries;
	scopes.pc_count = 3;
}

/* Rare code that no instruction in front of it leads to comes after the branch to it, and before where it jumps. */
static void test_aside(void **state)
{
	static const char aside[] = CALL /* 0: first() */
				    "\x0f\x84\x07\x00\x00\x00" /* 5: to 18 */
				    CALL "\xc3\x90" /* 11: second() */
				    CALL "\xeb\xf2"; /* 18: a stub; back to 11 */
	static const struct duet_code_pc around[] = {
		{.offset = 5, .frame = 0, .depth = 2, .flags = SCOPES_SAFEPOINT},
		{.offset = 16, .frame = 2, .depth = 2, .flags = SCOPES_SAFEPOINT},
	};

	scopes.code = (const uint8_t *)aside;
	scopes.code_bytes = sizeof(aside) - 1;
	scopes.pcs = around;
	scopes.pc_count = 2;
	kind = 1;
	ways = (struct stub_callers){.ways = 1, .depth = 2, .way = {{.method = OUTER, .bci = 15}, {.method = THIRD}}};
	expect(23, THIRD, false); /* between 10 and 20 */
	scopes.frame_count = FRAMES;
	ways.way[0].bci = 5;
	expect(23, THIRD, false); /* there is none between */
	kind = 0;
	scopes.frame_count = FRAMES;
	scopes.code = (const uint8_t *)code;
	scopes.code_bytes = sizeof(code) - 1;
	scopes.pcs = entries;
	scopes.pc_count = 3;
}

/* With all scopes recorded, that of a call before a jump is not the next one in the code but the one at the target. */
static void test_exact(void **state)
{
	static const char jumping[] = "\x90" /* 0: first() */
				      CALL /* 1: a stub */
				      "\xeb\x04" /* 6: to 12 */
				      NOPS /* 8: second() */
				      NOPS; /* 12: first() */
	static const struct duet_code_pc recorded[] = {
		{.offset = 1, .frame = 0, .depth = 2},
		{.offset = 12, .frame = 2, .depth = 2},
		{.offset = 16, .frame = 5, .depth = 2},
	};

	scopes.code = (const uint8_t *)jumping;
	scopes.code_bytes = sizeof(jumping) - 1;
	scopes.pcs = recorded;
	scopes.is_exact = true;
	expect_flags(6, FIRST, DUET_PC_EXACT);
	expect_flags(12, SECOND, DUET_PC_EXACT);
	expect_flags(16, FIRST, DUET_PC_EXACT);
	silent = FIRST; /* the entry that calls something is HotSpot's own choice */
	expect_flags(6, SECOND, DUET_PC_ESTIMATED | DUET_PC_EXACT);
	silent = 0;
	kind = 1; /* of a stub that only the byte code after the call leads to */
	ways = (struct stub_callers){.ways = 1, .depth = 1, .way = {{.method = SECOND, .bci = 5}}};
	expect_flags(6, SECOND, DUET_PC_ESTIMATED | DUET_PC_EXACT);
	kind = 0;
	scopes.code = (const uint8_t *)code;
	scopes.code_bytes = sizeof(code) - 1;
	scopes.pcs = entries;
	scopes.is_exact = false;
}

static void test_null_checks(void **state)
{
	/* other words, then the table: its count, the access, the trap */
	static const uint32_t tables[] = {7, 0, 2, 1, 15, 38};

	scopes.tables = (const uint8_t *)tables;
	scopes.table_bytes = sizeof(tables);
	expect(16, SECOND, true);
	expect(18, SECOND, true); /* the next check is second()'s, too */
	scopes.table_bytes = 0;
}

static void test_no_room(void **state)
{
	uint32_t count;

	assert_null(scopes_estimate(&scopes, 2, &count));
	scopes.code_bytes = 0;
	assert_null(scopes_estimate(&scopes, 100, &count));
	scopes.code_bytes = sizeof(code) - 1;
}

/* Whatever the code and the tables are, it ends, and refers to no other entries. */
static void test_any_bytes(void **state)
{
	static uint8_t bytes[4096];
	struct scopes any = scopes;
	uint32_t seed = 1, count;

	for (int i = 0; i < 300; i++) {
		struct duet_code_pc *table;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16) & (i & 1 ? 0xff : 0x0f);
		any.calls = i & 2 ? calls_nothing : calls;
		any.code = any.tables = bytes;
		any.code_bytes = any.table_bytes = sizeof(bytes);
		table = scopes_estimate(&any, 10000, &count);
		for (uint32_t k = 0; k < count; k++)
			assert_true(table[k].frame + table[k].depth <= sizeof(frames) / sizeof(frames[0]));
		free(table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_a_check),
		cmocka_unit_test(test_entries_stay),
		cmocka_unit_test(test_behind_a_branch),
		cmocka_unit_test(test_on_no_way),
		cmocka_unit_test(test_between_equal_checks),
		cmocka_unit_test(test_null_checks),
		cmocka_unit_test(test_calls_of_byte_code),
		cmocka_unit_test(test_unknown_caller),
		cmocka_unit_test(test_entry_on_no_way),
		cmocka_unit_test(test_calls_of_methods),
		cmocka_unit_test(test_known_callers),
		cmocka_unit_test(test_nothing_recorded),
		cmocka_unit_test(test_right_after_a_check),
		cmocka_unit_test(test_before_the_only_entry),
		cmocka_unit_test(test_behind_the_last_entry),
		cmocka_unit_test(test_aside),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	print_message("skipped: the code in this test is for x86-64\n");
	return 0;
}

#endif
