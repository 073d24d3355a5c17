/* SPDX-License-Identifier: MIT */
/* The lookup of a row for a pc: mappings and rows are found, and no index leads out of an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "duet_unwind.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int walk_read(const void *at, void *to, uint32_t bytes, uint64_t address)
{
	(void)at, (void)to, (void)bytes, (void)address;
	return -1;
}

static const struct duet_unwind_mapping mappings[] = {
	{.start = 0x1000, .end = 0x2000, .base = 0x1000, .module = 0},
	{.start = 0x3000, .end = 0x4000, .base = 0x3000, .module = 1},
	{.start = 0x4000, .end = 0x5000, .base = 0x4000, .module = DUET_UNWIND_NO_MODULE},
	{.start = 0x7000, .end = 0x8000, .base = 0x6c00, .module = 0},
	{.start = 1ull << 40, .end = 1ull << 41, .base = 0x1000, .module = 0},
};
static struct duet_unwind_module modules[] = {
	{.first_row = 0, .first_page = 0, .pages = 2},
	{.first_row = 3, .first_page = 2, .pages = 9}, /* more pages than there are */
};
static const struct duet_unwind_page pages[] = {{0, 2}, {1, 3}, {0, 8}};
static const struct duet_unwind_row rows[] = {{.pc = 0}, {.pc = 0x200}, {.pc = 0x500}, {.pc = 0}};

static const struct duet_unwind_row *walk_row(const void *at, uint32_t index)
{
	return index < COUNT(rows) ? &rows[index] : NULL;
}

static const struct duet_unwind_mapping *walk_mapping(const void *at, uint32_t index)
{
	return index < COUNT(mappings) ? &mappings[index] : NULL;
}

static const struct duet_unwind_module *walk_module(const void *at, uint32_t index)
{
	return index < COUNT(modules) ? &modules[index] : NULL;
}

static const struct duet_unwind_page *walk_page(const void *at, uint32_t index)
{
	return index < COUNT(pages) ? &pages[index] : NULL;
}

#include "walk/tables.h"

static const struct unwind_cursor cursor;

static void mappings_are_found_by_their_range(void **state)
{
	assert_null(walk_find_mapping(&cursor, 0, 5, 0xfff));
	assert_ptr_equal(walk_find_mapping(&cursor, 0, 5, 0x1000), &mappings[0]);
	assert_ptr_equal(walk_find_mapping(&cursor, 0, 5, 0x1fff), &mappings[0]);
	assert_null(walk_find_mapping(&cursor, 0, 5, 0x2000));
	assert_ptr_equal(walk_find_mapping(&cursor, 0, 5, 0x4000), &mappings[2]);
	assert_ptr_equal(walk_find_mapping(&cursor, 0, 5, 0x7fff), &mappings[3]);
	assert_ptr_equal(walk_find_mapping(&cursor, 0, 5, 1ull << 40), &mappings[4]);
	assert_null(walk_find_mapping(&cursor, 0, 5, UINT64_MAX));
}

static void other_slices_are_not_searched(void **state)
{
	assert_null(walk_find_mapping(&cursor, 1, 2, 0x1000));
	assert_null(walk_find_mapping(&cursor, 1, 2, 0x7000));
	assert_ptr_equal(walk_find_mapping(&cursor, 1, 2, 0x3000), &mappings[1]);
	assert_null(walk_find_mapping(&cursor, 2, 0, 0x4000));
	assert_null(walk_find_mapping(&cursor, 4, 1000, 1));
	assert_null(walk_find_mapping(&cursor, UINT32_MAX, 2, 0x1000));
}

static void rows_are_found_by_page(void **state)
{
	assert_ptr_equal(walk_find_row(&cursor, &mappings[0], 0x1000), &rows[0]);
	assert_ptr_equal(walk_find_row(&cursor, &mappings[0], 0x11ff), &rows[0]);
	assert_ptr_equal(walk_find_row(&cursor, &mappings[0], 0x1200), &rows[1]);
	assert_ptr_equal(walk_find_row(&cursor, &mappings[0], 0x1400), &rows[1]);
	assert_ptr_equal(walk_find_row(&cursor, &mappings[0], 0x1500), &rows[2]);
	assert_ptr_equal(walk_find_row(&cursor, &mappings[3], 0x7000), &rows[1]); /* its base is 0x400 before it */
}

static void no_index_leads_out_of_the_arrays(void **state)
{
	assert_null(walk_find_row(&cursor, &mappings[0], 0x1800)); /* the module has two pages */
	assert_null(walk_find_row(&cursor, &mappings[2], 0x4000)); /* no module */
	assert_null(walk_find_row(&cursor, &mappings[4], 1ull << 40)); /* more than 4 GB from the base */
	assert_null(walk_find_row(&cursor, &mappings[0], 0xfff)); /* before the base */
	assert_null(walk_find_row(&cursor, &mappings[1], 0x3400)); /* a page that the array does not have */
	assert_null(walk_find_row(&cursor, &mappings[1], 0x3000)); /* rows that the array does not have */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_are_found_by_their_range),
		cmocka_unit_test(other_slices_are_not_searched),
		cmocka_unit_test(rows_are_found_by_page),
		cmocka_unit_test(no_index_leads_out_of_the_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
