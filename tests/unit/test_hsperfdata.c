/* SPDX-License-Identifier: MIT */
/* HotSpot's performance counters, as a JVM writes them, and as somebody else may. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/hsperfdata.h"

struct perf_file {
	uint8_t magic[4], little, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t modified;
	uint32_t entry_offset, num_entries;
	struct {
		uint32_t length, name_offset, vector_length;
		uint8_t type, flags, units, variability;
		uint32_t data_offset;
		char name[16];
		char data[12];
	} entries[2];
};

static struct perf_file perf_file(void)
{
	struct perf_file file = {
		.magic = {0xca, 0xfe, 0xc0, 0xc0},
		.little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
		.major = 2,
		.entry_offset = offsetof(struct perf_file, entries),
		.num_entries = 2,
	};

	for (int i = 0; i < 2; i++) {
		file.entries[i].length = sizeof(file.entries[i]);
		file.entries[i].name_offset = 20;
		file.entries[i].vector_length = 12;
		file.entries[i].type = 'B';
		file.entries[i].data_offset = 36;
		strcpy(file.entries[i].name, i ? "java.rt.vmArgs" : "java.other");
		strcpy(file.entries[i].data, i ? "-Xrs -Xint" : "other");
	}
	return file;
}

static int perf_string(const struct perf_file *file, size_t len, char *value, size_t size)
{
	char *exact = malloc(len); /* exact size, so that the sanitizer finds reads past the end */
	int err;

	memcpy(exact, file, len);
	err = hsperfdata_string(exact, len, "java.rt.vmArgs", value, size);
	free(exact);
	return err;
}

static void test_hsperfdata(void **state)
{
	struct perf_file file = perf_file();
	char value[64];

	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), 0);
	assert_string_equal(value, "-Xrs -Xint");
	assert_int_equal(perf_string(&file, sizeof(file), value, 5), 0);
	assert_string_equal(value, "-Xrs");
	file.num_entries = 1;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -ENOENT);
}

static void test_hsperfdata_number(void **state)
{
	struct perf_file file = perf_file();
	uint64_t number = 0, stored = 1ull << 40;

	assert_int_equal(hsperfdata_number(&file, sizeof(file), "java.rt.vmArgs", &number), -EBADMSG);
	file.entries[1].type = 'J';
	file.entries[1].vector_length = 0;
	memcpy(file.entries[1].data, &stored, sizeof(stored));
	assert_int_equal(hsperfdata_number(&file, sizeof(file), "java.rt.vmArgs", &number), 0);
	assert_true(number == stored);
	file.entries[1].data_offset = file.entries[1].length - 7;
	assert_int_equal(hsperfdata_number(&file, sizeof(file), "java.rt.vmArgs", &number), -EBADMSG);
	assert_int_equal(hsperfdata_number(&file, sizeof(file), "java.other", &number), -EBADMSG);
	assert_int_equal(hsperfdata_number(&file, sizeof(file), "nosuch", &number), -ENOENT);
}

static void test_hsperfdata_hostile(void **state)
{
	struct perf_file file;
	char value[64];

	file = perf_file();
	for (size_t len = 0; len < sizeof(file); len++) /* cut off anywhere */
		assert_true(perf_string(&file, len ? len : 1, value, sizeof(value)) < 0);
	file.magic[0] = 0;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -EBADMSG);
	file = perf_file();
	file.entry_offset = UINT32_MAX;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -EBADMSG);
	file = perf_file();
	file.entries[0].length = 0; /* would be an endless loop */
	file.num_entries = UINT32_MAX;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -EBADMSG);
	file = perf_file();
	file.entries[1].name_offset = UINT32_MAX;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -ENOENT);
	file = perf_file();
	file.entries[1].data_offset = file.entries[1].length;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -EBADMSG);
	file = perf_file();
	file.entries[1].vector_length = UINT32_MAX;
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -EBADMSG);
	file = perf_file();
	file.entries[1].type = 'J';
	assert_int_equal(perf_string(&file, sizeof(file), value, sizeof(value)), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hsperfdata),
		cmocka_unit_test(test_hsperfdata_number),
		cmocka_unit_test(test_hsperfdata_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
