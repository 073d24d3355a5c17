/* SPDX-License-Identifier: MIT */
/* The attributes and weights of samples of objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attributes.c"
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

JNIEnv *jvm_own_env(void)
{
	return NULL;
}

char *jvm_class_signature(jclass class)
{
	(void)class;
	return NULL;
}

void jvm_deallocate(void *memory)
{
	(void)memory;
}

void sample_here(struct stay *stay, const struct tap_sample *from)
{
	(void)stay, (void)from;
}

struct sample_kept *sample_keep(struct stay *stay, const struct tap_sample *from, void *(*new_memory)(size_t bytes))
{
	(void)stay, (void)from, (void)new_memory;
	return NULL;
}

void sample_write_kept(struct stay *stay, struct sample_kept *kept, uint64_t end_ns, uint64_t weight, bool waits)
{
	(void)stay, (void)kept, (void)end_ns, (void)weight, (void)waits;
}

/* The JVM samples at the shorter interval. An event with a longer one gets proportionally fewer samples. */
static void longer_intervals_choose_fewer(void **state)
{
	int count = 0;

	(void)state;
	sampled_interval = 100; /* weight 1000 is ten times the weight of the JVM's samples */
	live.is_open = true;
	for (int i = 0; i < 100000; i++)
		count += is_chosen(&live, 100, 1000);
	assert_in_range(count, 9000, 11000);
	assert_true(is_chosen(&live, 100, 100));
	live.is_open = false;
	assert_false(is_chosen(&live, 100, 100));
}

static void attributes_have_size_and_class(void **state)
{
	char name[2 * DUET_MAX_CLASS_BYTES];
	struct attributes attributes;

	(void)state;
	assert_int_equal(fill(&attributes, 24, "[B"), 16 + 8 + 8);
	assert_int_equal(attributes.size, 24);
	assert_int_equal(attributes.class.head.bytes, 2);
	assert_memory_equal(attributes.class.name, "[B\0\0\0\0\0\0", 8);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(fill(&attributes, 24, name), sizeof(attributes));
	assert_true(sizeof(attributes) <= DUET_MAX_ATTRIBUTE_BYTES);
	assert_int_equal(fill(&attributes, 24, NULL), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longer_intervals_choose_fewer),
		cmocka_unit_test(attributes_have_size_and_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
