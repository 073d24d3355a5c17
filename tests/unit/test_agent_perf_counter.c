/* SPDX-License-Identifier: MIT */
/* A made-up JVM's counters: the right one is found, and inconsistent ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/perf_counter.c"
#include "memory.c"
#include "safe_copy.c"

static struct {
	struct perf_prologue head;
	struct {
		struct perf_entry entry;
		char name[20];
		int64_t value;
	} counters[3];
} memory;

static void add(unsigned int i, const char *name, uint8_t type)
{
	memory.counters[i].entry = (struct perf_entry){.bytes = sizeof(memory.counters[i]),
						  .name = offsetof(typeof(memory.counters[0]), name),
						  .type = type,
						  .value = offsetof(typeof(memory.counters[0]), value)};
	strncpy(memory.counters[i].name, name, sizeof(memory.counters[i].name) - 1);
}

static int setup(void **state)
{
	memset(&memory, 0, sizeof(memory));
	memory.head = (struct perf_prologue){.magic = 0xc0c0feca,
					.major = 2,
					.used = sizeof(memory),
					.first = offsetof(typeof(memory), counters),
					.entries = 3};
	add(0, "sun.rt.safepoint", 'J');
	add(1, "sun.rt.safepoints", 'J');
	add(2, "sun.rt.text", 'B');
	return 0;
}

static uintptr_t find(const char *name)
{
	return perf_counter((uintptr_t)&memory, name);
}

static void finds_by_whole_name(void **state)
{
	assert_int_equal(find("sun.rt.safepoints"), (uintptr_t)&memory.counters[1].value);
	assert_int_equal(find("sun.rt.safepoint"), (uintptr_t)&memory.counters[0].value);
	assert_int_equal(find("sun.rt.safe"), 0);
}

static void takes_only_numbers(void **state)
{
	assert_int_equal(find("sun.rt.text"), 0);
	memory.counters[1].entry.vector_length = 2;
	assert_int_equal(find("sun.rt.safepoints"), 0);
}

static void stays_within_the_memory(void **state)
{
	memory.head.used = (int32_t)(offsetof(typeof(memory), counters) + sizeof(memory.counters[0]) + 8);
	assert_int_equal(find("sun.rt.safepoints"), 0);
	setup(NULL);
	memory.counters[0].entry.bytes = 0;
	assert_int_equal(find("sun.rt.safepoints"), 0);
	setup(NULL);
	memory.counters[1].entry.bytes = INT32_MAX;
	assert_int_equal(find("sun.rt.safepoints"), 0);
	setup(NULL);
	memory.counters[1].entry.value = (int32_t)sizeof(memory.counters[0]) - 7;
	assert_int_equal(find("sun.rt.safepoints"), 0);
	setup(NULL);
	memory.counters[1].entry.name = -1;
	assert_int_equal(find("sun.rt.safepoints"), 0);
}

static void is_not_made_up_from_other_memory(void **state)
{
	memory.head.magic++;
	assert_int_equal(find("sun.rt.safepoints"), 0);
	assert_int_equal(perf_counter(0, "sun.rt.safepoints"), 0);
	assert_int_equal(perf_counter(4096, "sun.rt.safepoints"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(finds_by_whole_name, setup),
		cmocka_unit_test_setup(takes_only_numbers, setup),
		cmocka_unit_test_setup(stays_within_the_memory, setup),
		cmocka_unit_test_setup(is_not_made_up_from_other_memory, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
