/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sym/function_starts.h"

struct eh_frame_hdr {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	uint32_t frame, count;
	int32_t rows[3][2];
};

static const struct eh_frame_hdr good_hdr = {1, 0x1b, 0x03, 0x3b, 0, 3, {{-0x800, 0}, {-0x700, 0}, {0x40, 0}}};

/* .eh_frame at 0x2000: one CIE, functions at 0x1040 and at 0x800, one that is not in the index, and the end */
static const struct eh_frame_entry {
	uint32_t len, cie;
	int32_t start;
	uint32_t size;
} good_frames[] = {
	{12, 0, 1, 2},
	{12, 0x14, 0x1040 - 0x2018, 0x10},
	{12, 0x24, 0x800 - 0x2028, 0xff},
	{12, 0x34, 0x870 - 0x2038, 0x10},
	{0, 0, 0, 0},
	{12, 0x54, 0x900 - 0x2058, 0x10},
};

/* No length leads out of the section. */
static void test_garbage_function_sizes(void **state)
{
	struct eh_frame_entry *exact = malloc(sizeof(good_frames));
	struct function_starts starts;

	assert_int_equal(function_starts_read(&starts, 0x1000, &good_hdr, sizeof(good_hdr)), 0);
	for (uint32_t len = 0; len < 200; len++) {
		memcpy(exact, good_frames, sizeof(good_frames));
		exact[1].len = len < 100 ? len : UINT32_MAX - len + 100;
		free(starts.sizes);
		assert_int_equal(function_starts_measure(&starts, 0x2000, exact, sizeof(good_frames)), 0);
	}
	function_starts_release(&starts);
	free(exact);
}

static void test_function_starts(void **state)
{
	struct function_starts starts = {0};
	uint64_t start = 7;

	assert_false(function_starts_find(&starts, UINT64_MAX, &start));
	assert_int_equal(function_starts_next(&starts, 0), UINT64_MAX);
	assert_int_equal(function_starts_read(&starts, 0x1000, &good_hdr, sizeof(good_hdr)), 0);
	assert_false(function_starts_find(&starts, 0x7ff, &start));
	assert_int_equal(start, 7);
	assert_false(function_starts_find(&starts, 0x800, &start)); /* sizes are not known */
	assert_int_equal(function_starts_measure(&starts, 0x2000, &good_frames, sizeof(good_frames)), 0);
	assert_true(function_starts_find(&starts, 0x800, &start) && start == 0x800);
	assert_true(function_starts_find(&starts, 0x8fe, &start) && start == 0x800);
	assert_false(function_starts_find(&starts, 0x8ff, &start));
	assert_false(function_starts_find(&starts, 0x900, &start)); /* no FDE has it */
	assert_true(function_starts_find(&starts, 0x104f, &start) && start == 0x1040);
	assert_false(function_starts_find(&starts, 0x1050, &start));
	assert_int_equal(function_starts_next(&starts, 0), 0x800);
	assert_int_equal(function_starts_next(&starts, 0x800), 0x900);
	assert_int_equal(function_starts_next(&starts, 0x1040), UINT64_MAX);
	function_starts_release(&starts);
	function_starts_release(NULL);
}

static void read_garbage_hdr(struct eh_frame_hdr hdr, size_t len, int expected)
{
	struct function_starts starts = {0};
	char *exact = malloc(len + !len); /* so that the sanitizer sees a byte too many */

	memcpy(exact, &hdr, len);
	assert_int_equal(function_starts_read(&starts, UINT64_MAX, exact, len), expected);
	assert_null(starts.offsets);
	free(exact);
}

static void test_garbage_function_starts(void **state)
{
	struct eh_frame_hdr hdr;

	for (size_t len = 0; len < sizeof(hdr); len++)
		read_garbage_hdr(good_hdr, len, -EINVAL);
	for (int byte = 0; byte < 4; byte++) { /* "nothing", and encodings that linkers could but do not write */
		memcpy(&hdr, &good_hdr, sizeof(hdr));
		((uint8_t *)&hdr)[byte] = 0xff;
		read_garbage_hdr(hdr, sizeof(hdr), -ENOTSUP);
		((uint8_t *)&hdr)[byte] = 0x04;
		read_garbage_hdr(hdr, sizeof(hdr), -ENOTSUP);
	}
	hdr = good_hdr;
	hdr.count = 0;
	read_garbage_hdr(hdr, sizeof(hdr), -EINVAL);
	hdr.count = UINT32_MAX;
	read_garbage_hdr(hdr, sizeof(hdr), -EINVAL);
	hdr = good_hdr;
	hdr.rows[1][0] = INT32_MIN;
	read_garbage_hdr(hdr, sizeof(hdr), -EINVAL);
}

/* Whatever the table says, the result is an address that is printed, never one that is followed. */
static void test_extreme_function_starts(void **state)
{
	struct eh_frame_hdr hdr = good_hdr;
	uint64_t bases[] = {0, 0x1000, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
	struct function_starts starts;
	uint64_t start;

	hdr.rows[0][0] = INT32_MIN;
	hdr.rows[2][0] = INT32_MAX;
	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		assert_int_equal(function_starts_read(&starts, bases[i], &hdr, sizeof(hdr)), 0);
		for (size_t j = 0; j < sizeof(bases) / sizeof(*bases); j++) {
			function_starts_find(&starts, bases[j], &start);
			function_starts_next(&starts, bases[j]);
		}
		function_starts_release(&starts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_garbage_function_sizes),
		cmocka_unit_test(test_function_starts),
		cmocka_unit_test(test_garbage_function_starts),
		cmocka_unit_test(test_extreme_function_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
