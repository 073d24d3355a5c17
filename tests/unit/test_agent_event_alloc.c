/* SPDX-License-Identifier: MIT */
/* What the sample of an object tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "event_alloc.c"

struct agent_jvm jvm;

uint64_t byte_clock_weight(uint64_t size, uint64_t interval)
{
	(void)interval;
	return size;
}

struct stay *stay_enter(void)
{
	return NULL;
}

void stay_leave(void)
{
}

void jvm_deallocate(void *memory)
{
	(void)memory;
}

void sample_here(struct stay *stay, const struct tap_sample *from)
{
	(void)stay, (void)from;
}

static void attributes_have_size_and_class(void **state)
{
	char name[2 * DUET_MAX_CLASS_BYTES];
	struct attributes attributes;

	(void)state;
	assert_int_equal(fill(&attributes, 24, "[B"), 16 + 8 + 8);
	assert_int_equal(attributes.size, 24);
	assert_int_equal(attributes.class_head.bytes, 2);
	assert_memory_equal(attributes.class_name, "[B\0\0\0\0\0\0", 8);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(fill(&attributes, 24, name), sizeof(attributes));
	assert_true(sizeof(attributes) <= DUET_MAX_ATTRIBUTE_BYTES);
	assert_int_equal(fill(&attributes, 24, NULL), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_have_size_and_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
