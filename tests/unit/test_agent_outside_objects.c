/* SPDX-License-Identifier: MIT */
/* When the JVM has to sample closely because of objects outside of their threads' buffers, and how closely. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event/outside_objects.c"

#define INTERVAL (512u << 10)
#define KIB 1024u

struct agent_jvm jvm;
static uintptr_t thread[3]; /* begin, top and end of its buffer, of 1 MiB */

uintptr_t jvm_current_thread(void)
{
	return (uintptr_t)thread;
}

/* Near enough here. */
uint64_t byte_clock_weight(uint64_t size, uint64_t interval)
{
	return size > interval ? size : interval;
}

static struct duet_jvm_layout layout = {.allocation = {.buffer_start = 0, .buffer_top = 8, .buffer_end = 16}};
static struct stay stay = {.layout = &layout};

static int begin(void **state)
{
	jvm.version = 17;
	thread[0] = 0x10000000;
	thread[1] = thread[2] = thread[0] + (KIB << 10);
	outside_objects_begin();
	return 0;
}

static void count(unsigned int times, bool is_outside, uint64_t size)
{
	uintptr_t address = is_outside ? thread[2] + 64 : thread[0] + 64;

	for (unsigned int i = 0; i < times; i++)
		outside_objects_count(&stay, (jobject)&address, size, INTERVAL);
}

static void small_objects_change_nothing(void **state)
{
	count(10000, false, 24);
	count(10000, false, 16 * KIB); /* they end a buffer, and are in the next one */
	assert_int_equal(outside_objects_interval(INTERVAL), INTERVAL);
}

static void few_samples_decide_nothing(void **state)
{
	count(FEWEST_SAMPLES - 1, true, 100 * KIB);
	assert_int_equal(outside_objects_interval(INTERVAL), INTERVAL);
}

/* 1,000 samples, of which 10 stand for five objects of 100 KiB each: one in 20 may be too many. */
static void a_quarter_of_the_size(void **state)
{
	count(990, false, 24);
	count(10, true, 100 * KIB);
	assert_in_range(outside_objects_interval(INTERVAL), 25 * KIB - 8, 25 * KIB);
	assert_int_equal(outside_objects_interval(8 * KIB), 8 * KIB); /* close enough as it is */
}

static void not_below_the_least(void **state)
{
	count(100, true, 20 * KIB);
	assert_int_equal(outside_objects_interval(INTERVAL), LEAST_INTERVAL);
}

/* A sampled one of 100 KiB in a buffer of 1 MiB stands for five, of which one in ten meets a buffer without room. */
static void others_of_their_size(void **state)
{
	count(900, false, 24);
	count(100, false, 100 * KIB);
	assert_in_range(outside_objects_interval(INTERVAL), 25 * KIB - 8, 25 * KIB);
}

static void other_versions_are_left_alone(void **state)
{
	const int right[] = {11, 25, 27};

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		jvm.version = right[i];
		count(1000, true, 100 * KIB);
		assert_int_equal(outside_objects_interval(INTERVAL), INTERVAL);
	}
}

/* Between collections a thread may have no buffer, and of an unknown JVM nothing is read. */
static void without_a_buffer(void **state)
{
	thread[0] = thread[2] = 0;
	count(1000, true, 100 * KIB);
	stay.layout = NULL;
	count(1000, true, 100 * KIB);
	stay.layout = &layout;
	assert_int_equal(outside_objects_interval(INTERVAL), INTERVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(small_objects_change_nothing, begin),
		cmocka_unit_test_setup(few_samples_decide_nothing, begin),
		cmocka_unit_test_setup(a_quarter_of_the_size, begin),
		cmocka_unit_test_setup(not_below_the_least, begin),
		cmocka_unit_test_setup(others_of_their_size, begin),
		cmocka_unit_test_setup(other_versions_are_left_alone, begin),
		cmocka_unit_test_setup(without_a_buffer, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
