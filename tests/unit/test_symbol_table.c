/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sym/symbol_table.h"

#define MOST_NAMES 6

struct name {
	const char *text;
	enum symbol_linkage linkage;
	uint64_t size;
};

/* Names of one address, the usual one first. */
static const struct name cases[][MOST_NAMES] = {
	{{"__libc_start_main", SYMBOL_GLOBAL, 321},
	 {"__libc_start_main", SYMBOL_SUPERSEDED, 321},
	 {"__libc_start_main_alias_1", SYMBOL_LOCAL, 321},
	 {"__libc_start_main_alias_2", SYMBOL_LOCAL, 321},
	 {"__libc_start_main_impl", SYMBOL_LOCAL, 321}},
	{{"malloc", SYMBOL_GLOBAL, 791},
	 {"__libc_malloc", SYMBOL_GLOBAL, 791},
	 {"__GI___libc_malloc", SYMBOL_LOCAL, 791}},
	{{"write", SYMBOL_WEAK, 155}, {"__write", SYMBOL_GLOBAL, 155}, {"__GI___write", SYMBOL_LOCAL, 155}},
	{{"puts", SYMBOL_WEAK, 300}, {"_IO_puts", SYMBOL_GLOBAL, 300}, {"__GI__IO_puts", SYMBOL_LOCAL, 300}},
	{{"__lll_trylock_elision", SYMBOL_LOCAL, 107}, {"__GI___lll_trylock_elision", SYMBOL_LOCAL, 107}},
	{{"memcpy", SYMBOL_GLOBAL, 265},
	 {"memcpy", SYMBOL_LOCAL, 265},
	 {"__new_memcpy_ifunc", SYMBOL_LOCAL, 265},
	 {"__new_memcpy", SYMBOL_LOCAL, 265},
	 {"__GI_memcpy", SYMBOL_LOCAL, 265}},
	{{"__memcpy_avx_unaligned_erms", SYMBOL_LOCAL, 500}, {"__memmove_avx_unaligned_erms", SYMBOL_LOCAL, 500}},
	{{"clock_gettime", SYMBOL_GLOBAL, 106},
	 {"clock_gettime", SYMBOL_SUPERSEDED, 106},
	 {"__clock_gettime", SYMBOL_GLOBAL, 106},
	 {"__clock_gettime_2", SYMBOL_LOCAL, 106}},
	{{"xdr_union", SYMBOL_SUPERSEDED, 143},
	 {"__EI_xdr_union", SYMBOL_LOCAL, 143},
	 {"__GI_xdr_union", SYMBOL_LOCAL, 143}},
	{{"pthread_mutexattr_getrobust", SYMBOL_GLOBAL, 13}, {"old_name", SYMBOL_SUPERSEDED, 13}},
	{{"strfromf", SYMBOL_GLOBAL, 546}, {"strfromf32", SYMBOL_WEAK, 546}},
	{{"lseek", SYMBOL_WEAK, 33}, {"lseek64", SYMBOL_WEAK, 33}, {"__lseek", SYMBOL_GLOBAL, 33}},
	{{"_ZN4duet4testC1Ev", SYMBOL_WEAK, 20}, {"_ZN4duet4testC2Ev", SYMBOL_WEAK, 20}},
	{{"refill", SYMBOL_LOCAL, 20}, {"refill.part.0", SYMBOL_GLOBAL, 20}, {"refill.cold", SYMBOL_GLOBAL, 20}},
	{{"main.main", SYMBOL_LOCAL, 20}, {"main.main.llvm.42", SYMBOL_LOCAL, 20}},
	{{"sized", SYMBOL_LOCAL, 8}, {"mark", SYMBOL_GLOBAL, 0}},
	{{"my_alias_", SYMBOL_LOCAL, 8}, {"a_alias_1", SYMBOL_LOCAL, 8}},
	{{"__x64_sys_getpid", SYMBOL_GLOBAL, 0},
	 {"__ia32_sys_getpid", SYMBOL_GLOBAL, 0},
	 {"__do_sys_getpid", SYMBOL_LOCAL, 0}},
	{{"__x64_sys_read", SYMBOL_GLOBAL, 0}, {"__se_sys_read", SYMBOL_LOCAL, 0}},
	{{"memset", SYMBOL_GLOBAL, 0}, {"__memset", SYMBOL_GLOBAL, 0}, {"__pi_memset", SYMBOL_GLOBAL, 0}},
	{{"__do_softirq", SYMBOL_GLOBAL, 0}, {"__softirqentry_text_start", SYMBOL_GLOBAL, 0}},
	{{"write_ibpb", SYMBOL_GLOBAL, 0}, {"__noinstr_text_start", SYMBOL_GLOBAL, 0}, {"__pfx_foo", SYMBOL_GLOBAL, 0}},
};

static const char *choose(const struct name *names, size_t count, size_t first, size_t step)
{
	static char chosen[64];
	struct symbol_table table;

	table = (struct symbol_table){0};
	for (size_t i = 0; i < count; i++) {
		const struct name *name = &names[(first + i * step) % count];

		assert_int_equal(symbol_table_add(&table, 0x1000, name->size, 64, name->linkage, name->text,
						  strlen(name->text)), 0);
	}
	symbol_table_sort(&table, SYMBOL_USUAL);
	assert_int_equal(table.rows.len, 1);
	snprintf(chosen, sizeof(chosen), "%s", symbol_table_find(&table, 0x1000, NULL));
	symbol_table_release(&table);
	return chosen;
}

/* From each name on, forwards and backwards. */
static void test_usual_name_in_any_order(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t count = 0;

		while (count < MOST_NAMES && cases[i][count].text)
			count++;
		for (size_t first = 0; first < count; first++) {
			assert_string_equal(choose(cases[i], count, first, 1), cases[i][0].text);
			assert_string_equal(choose(cases[i], count, first, count - 1), cases[i][0].text);
		}
	}
}

/* One name twice: the size is the same whichever comes first. */
static void test_size_in_any_order(void **state)
{
	const uint64_t sizes[][2] = {{16, 32}, {32, 16}};

	for (size_t i = 0; i < 2; i++) {
		struct symbol_table table;

		table = (struct symbol_table){0};
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(symbol_table_add(&table, 0x1000, sizes[i][j], 0, SYMBOL_GLOBAL, "f", 1), 0);
		symbol_table_sort(&table, SYMBOL_USUAL);
		assert_non_null(symbol_table_find(&table, 0x101f, NULL));
		assert_null(symbol_table_find(&table, 0x1020, NULL));
		symbol_table_release(&table);
	}
}

static void test_newest(void **state)
{
	struct symbol_table table;

	table = (struct symbol_table){0};
	assert_int_equal(symbol_table_add(&table, 0x1000, 8, 0, SYMBOL_GLOBAL, "old", 3), 0);
	assert_int_equal(symbol_table_add(&table, 0x1000, 8, 0, SYMBOL_LOCAL, "__new.cold", 10), 0);
	symbol_table_sort(&table, SYMBOL_NEWEST);
	assert_string_equal(symbol_table_find(&table, 0x1007, NULL), "__new.cold");
	symbol_table_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual_name_in_any_order),
		cmocka_unit_test(test_size_in_any_order),
		cmocka_unit_test(test_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
