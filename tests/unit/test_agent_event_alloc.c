/* SPDX-License-Identifier: MIT */
/* What a sampled object stands for, and what its sample tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "event_alloc.c"

struct agent_jvm jvm;

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

/* size / (1 - exp(-size / interval)), computed with 30 digits */
static void expect_weight(uint64_t size, uint64_t interval, double weight)
{
	double got = (double)weight_of(size, interval);

	assert_true(got <= weight + 1 && got >= weight - 1 - weight * 1e-9);
}

static void weights_are_unbiased(void **state)
{
	(void)state;
	expect_weight(16, 524288, 524296.00004);
	expect_weight(5242, 524288, 526913.36785);
	expect_weight(5243, 524288, 526913.86951);
	expect_weight(524288, 524288, 829411.40369);
	expect_weight(1048576, 524288, 1212696.64376);
	expect_weight(20971520, 524288, 20971520);
	expect_weight(1ull << 40, 524288, 1ull << 40);
	expect_weight(16, 1, 16.0000018);
	expect_weight(24, 4096, 4108.01172);
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
		cmocka_unit_test(weights_are_unbiased),
		cmocka_unit_test(attributes_have_size_and_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
