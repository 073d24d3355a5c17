/* SPDX-License-Identifier: MIT */
/* The attributes and weights of samples of objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample/attributes.c"
#include "event/alloc.c"

struct agent_jvm jvm;

uint64_t byte_clock_weight(uint64_t size, uint64_t interval)
{
	return size;
}

void outside_objects_begin(void)
{
}

void outside_objects_count(struct stay *stay, jobject object, uint64_t size, uint64_t interval)
{
	(void)stay, (void)object, (void)size, (void)interval;
}

uint64_t outside_objects_interval(uint64_t interval)
{
	return interval;
}

static uint32_t collections;

bool collections_open(void)
{
	return true;
}

void collections_close(void)
{
}

uint32_t collections_count(void)
{
	return collections;
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

bool jvm_set_event(jvmtiEventMode mode, jvmtiEvent event)
{
	(void)mode, (void)event;
	return true;
}

char *jvm_class_signature(jclass class)
{
	return NULL;
}

void jvm_deallocate(void *memory)
{
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

static int written;

void sample_write_kept(struct stay *stay, struct sample_kept *kept, uint64_t end_ns, uint64_t weight, uint32_t room_ms)
{
	(void)stay, (void)kept, (void)end_ns, (void)weight, (void)room_ms;
	written++;
}

/* The JVM samples at the shorter interval. An event with a longer one gets proportionally fewer samples. */
static void longer_intervals_choose_fewer(void **state)
{
	int count = 0;

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

	assert_int_equal(fill(&attributes, 24, "[B"), 16 + 8 + 8);
	assert_int_equal(attributes.size, 24);
	assert_int_equal(attributes.class.head.bytes, 2);
	assert_memory_equal(attributes.class.name, "[B\0\0\0\0\0\0", 8);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(fill(&attributes, 24, name), offsetof(struct attributes, room));
	assert_true(sizeof(attributes) <= DUET_MAX_ATTRIBUTE_BYTES);
	assert_int_equal(fill(&attributes, 24, NULL), 16);
}

/* All ages take the same room in a sample, which was made before they are known. */
static void ages_have_one_size(void **state)
{
	uint64_t below_ns = 0;
	struct age_attribute age;

	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		set_age(&age, below_ns);
		assert_int_equal(age.head.bytes, strlen(ages[i].text));
		assert_memory_equal(age.text, ages[i].text, age.head.bytes);
		assert_int_equal(duet_attribute_size(age.head.bytes), sizeof(age));
		assert_true(ages[i].below_ns > below_ns);
		below_ns = ages[i].below_ns;
	}
}

static void the_age_is_that_when_told(void **state)
{
	struct attributes attributes;
	struct {
		struct sample_kept kept;
		unsigned char record[sizeof(attributes)];
	} sample = {.kept = {.begin_ns = 5 * SECOND}};
	struct live_object object = {.sample = &sample.kept};
	struct live_visit visit = {.stay = (struct stay *)&sample, .ended_ns = 70 * SECOND};
	uint32_t bytes = fill(&attributes, 24, "[B");
	const struct age_number *number;

	shown.has_ages = true;
	bytes += add_age(&attributes, bytes);
	memcpy(sample.record, &attributes, bytes);
	sample.kept.bytes = bytes;
	write_object(&visit, &object);
	number = (struct age_number *)(sample.record + bytes) - 1;
	assert_memory_equal((char *)number - 16, "age_1_to_10_min", 15);
	assert_int_equal(number->head.type, DUET_ATTRIBUTE_AGE);
	assert_int_equal(number->age_ns, 65 * SECOND);
	shown.has_ages = false;
}

static void young_objects_are_left_out(void **state)
{
	struct {
		struct sample_kept kept;
		struct age_number age;
	} sample = {.kept = {.bytes = sizeof(sample.age)}};
	struct live_object object = {.sample = &sample.kept, .collections = UINT32_MAX};
	struct live_visit visit = {.stay = (struct stay *)&sample};

	shown.survivors = 3;
	written = 0;
	for (collections = UINT32_MAX; collections != 4; collections++)
		write_object(&visit, &object);
	assert_int_equal(written, 2); /* at 3 and 4 pauses, where the count has wrapped */
	shown.survivors = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longer_intervals_choose_fewer),
		cmocka_unit_test(attributes_have_size_and_class),
		cmocka_unit_test(ages_have_one_size),
		cmocka_unit_test(the_age_is_that_when_told),
		cmocka_unit_test(young_objects_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
