/* SPDX-License-Identifier: MIT */
/* Which waits are sampled, their weights, and what happens to a wait whose end is not reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample/attributes.c"
#include "wait/waiting.c"

struct agent_jvm jvm;

void *pages_new(size_t bytes)
{
	static struct duet_lock_waiter array[DUET_LOCK_WAITERS];

	assert_int_equal(bytes, sizeof(array));
	return array;
}

static bool keep_fails;

struct stay *stay_enter(void)
{
	static struct stay stay;

	return &stay;
}

void stay_leave(void)
{
}

uintptr_t jvm_java_thread(JNIEnv *env, jthread thread)
{
	(void)env, (void)thread;
	return 0;
}

char *jvm_class_signature(jclass class)
{
	return NULL;
}

void jvm_deallocate(void *memory)
{
}

struct sample_kept *sample_keep(struct stay *stay, const struct tap_sample *from, void *(*new_memory)(size_t bytes))
{
	(void)stay, (void)from, (void)new_memory;
	return keep_fails ? NULL : calloc(1, sizeof(struct sample_kept));
}

void ring_touch(struct ring *ring)
{
}

struct sample_thread sample_own_thread(void)
{
	return (struct sample_thread){.tid = 70003};
}

static uint64_t written, walked, walked_by_other;

void sample_write_kept(struct stay *stay, struct sample_kept *kept, uint64_t end_ns, uint64_t weight,
		       uint32_t room_ms)
{
	(void)stay, (void)kept, (void)end_ns, (void)room_ms;
	written += weight;
}

void sample_here(struct stay *stay, const struct tap_sample *from)
{
	walked += from->weight;
}

void sample_blocked(struct stay *stay, const struct tap_sample *from, const struct sample_thread *thread,
		    uint64_t time_ns)
{
	(void)stay, (void)thread, (void)time_ns;
	walked_by_other += from->weight;
}

static struct wait *waiting;

bool waits_put(struct waits *waits, uint64_t key, void *value)
{
	(void)waits, (void)key;
	waiting = value;
	return true;
}

void *waits_take(struct waits *waits, uint64_t key)
{
	struct wait *wait = waiting;

	(void)waits, (void)key;
	waiting = NULL;
	return wait;
}

void waits_end(struct waits *waits, void (*take)(void *context, void *value), void *context)
{
	if (waiting)
		take(context, waits_take(waits, 1));
}

void waits_trim(struct waits *waits)
{
}

static void long_waits_weigh_what_they_last(void **state)
{
	for (uint64_t begin = 1; begin < 1000; begin++) {
		assert_int_equal(wait_weight(10000, 10000, begin), 10000);
		assert_int_equal(wait_weight(123456, 10000, begin), 123456);
		assert_int_equal(wait_weight(0, 10000, begin), 0);
	}
}

/* The number of samples has an error of 0.3 % at most; waits that follow each other are sampled like any others. */
static void expect_mean(uint64_t waited, uint64_t interval, uint64_t step)
{
	uint64_t sum = 0, count = 1000000;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t weight = wait_weight(waited, interval, 1700000000000000000ull + i * step);

		assert_true(!weight || weight == interval);
		sum += weight;
	}
	assert_true(sum > count * waited / 50 * 49 && sum < count * waited / 50 * 51);
}

static void short_waits_are_sampled_at_random(void **state)
{
	expect_mean(1000, 10000, 1);
	expect_mean(1000, 10000, 1000);
	expect_mean(5000, 10000, 1 << 20);
	expect_mean(9999, 10000, 1000000);
	expect_mean(50000000, 1000000000, 12345);
}

static struct waits waits;
static struct wait_event event = {.tap.every.interval = 1, .waits = &waits};

static void wait_since(uint64_t ago_ns, bool is_kept)
{
	waiting = calloc(1, sizeof(*waiting));
	waiting->begin_ns = clock_ns() - ago_ns;
	waiting->kept = is_kept ? calloc(1, sizeof(*waiting->kept)) : NULL;
	written = walked = walked_by_other = 0;
}

static void a_wait_is_written_once(void **state)
{
	wait_since(5000, true);
	wait_ends(&event, NULL, 1);
	assert_true(written >= 5000);
	assert_int_equal(walked + walked_by_other, 0);
	written = 0;
	wait_ends(&event, NULL, 1);
	assert_int_equal(written, 0);
}

static void a_wait_without_a_stack_is_walked_at_its_end(void **state)
{
	wait_since(5000, false);
	wait_ends(&event, NULL, 1);
	assert_true(walked >= 5000);
	assert_int_equal(written + walked_by_other, 0);
}

static void a_wait_that_has_not_ended_is_told_at_the_end(void **state)
{
	const struct duet_agent_event from = {.interval = 1};

	wait_since(7000, true);
	wait_event_open(&event, &from);
	assert_true(tap_event_is_open(&event.tap));
	assert_int_equal(written, 0); /* of an earlier recording */
	wait_since(7000, true);
	wait_event_close(&event, clock_ns());
	assert_false(tap_event_is_open(&event.tap));
	assert_true(written >= 7000);
	wait_since(7000, false);
	wait_event_close(&event, clock_ns());
	assert_true(walked_by_other >= 7000);
	assert_int_equal(written + walked, 0);
}

/* The stack of a virtual thread is walked first, while it is on a carrier's. */
static void a_virtual_thread_is_walked_before_its_wait(void **state)
{
	static struct stay stay;

	wait_begins(&event, &stay, 1, &(struct wait_reason){.is_virtual = true});
	assert_non_null(waiting->kept);
	assert_int_equal(event.virtual_kept, 1);
	wait_begins(&event, &stay, 1, &(struct wait_reason){.is_virtual = true}); /* replaces the first one */
	assert_int_equal(event.virtual_kept, 1);
	waiting->begin_ns -= 5000;
	written = walked = walked_by_other = 0;
	wait_ends(&event, &stay, 1);
	assert_true(written >= 5000);
	assert_int_equal(walked + walked_by_other + event.virtual_kept, 0);
	wait_begins(&event, &stay, 1, &(struct wait_reason){0});
	assert_null(waiting->kept);
	wait_ends(&event, &stay, 1);
}

static void too_many_virtual_threads_are_not_walked(void **state)
{
	static struct duet_ring_page page;
	static struct stay stay = {.ring.page = &page};

	event.virtual_kept = VIRTUAL_KEPT_MAX;
	wait_begins(&event, &stay, 1, &(struct wait_reason){.is_virtual = true});
	assert_null(waiting->kept);
	assert_int_equal(event.virtual_kept, VIRTUAL_KEPT_MAX);
	waiting->begin_ns -= 7000;
	written = walked = walked_by_other = 0;
	wait_ends(&event, &stay, 1);
	assert_true(walked >= 7000);
	event.virtual_kept = 0;
	keep_fails = true;
	wait_begins(&event, &stay, 1, &(struct wait_reason){.is_virtual = true});
	keep_fails = false;
	assert_null(waiting);
	assert_int_equal(event.virtual_kept, 0);
}

#define LOCK 9

/* A wait that BPF is shown, with one for a lock of native code in it. */
static void a_wait_for_a_lock_is_shown(void **state)
{
	const struct duet_agent_event from = {.interval = 1000, .flags = DUET_AGENT_WITH_LOCK};
	const uint64_t handle = 0x715001238;
	const struct wait_reason reason = {
		.lock = LOCK, .blocks_thread = true, .address = wait_address((jobject)&handle)};
	static struct stay stay;
	struct duet_lock_waiter *shown, before;

	wait_event_open(&event, &from);
	shown = (void *)(uintptr_t)lock_waiters_address() + 70003 % DUET_LOCK_WAITERS * sizeof(*shown);
	wait_begins(&event, &stay, 1, &reason);
	assert_int_equal(shown->tid, 70003);
	assert_int_equal(shown->lock, LOCK);
	assert_in_range(shown->from_ns, waiting->begin_ns, waiting->begin_ns + 1000);
	assert_int_equal(waiting->attribute_bytes, sizeof(struct lock_attribute) + sizeof(struct address_attribute));
	assert_int_equal(waiting->address.address, 0x715001238);
	before = lock_waiters_show(70003, LOCK + 1, 5);
	assert_int_equal(shown->lock, LOCK + 1);
	lock_waiters_restore(70003, &before);
	assert_int_equal(shown->lock, LOCK);
	wait_ends(&event, &stay, 1);
	assert_int_equal(shown->tid, 0);
	wait_begins(&event, &stay, 1, &(struct wait_reason){.lock = LOCK});
	assert_int_equal(shown->tid, 0); /* a virtual thread waits without its carrier */
	wait_event_close(&event, clock_ns());
	assert_int_equal(lock_waiters_address(), 0);
}

/* Every wait that is sampled ends after the time from which its release is of interest. */
static void releases_of_sampled_waits_are_of_interest(void **state)
{
	for (uint64_t begin_ns = 1000000; begin_ns < 3000000; begin_ns += 997)
		for (uint64_t waited_ns = 1000; waited_ns < 200000; waited_ns += 9973)
			if (wait_weight(waited_ns, 100000, begin_ns))
				assert_true(wait_release_of_interest(100000, begin_ns) <= begin_ns + waited_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_waits_weigh_what_they_last),
		cmocka_unit_test(short_waits_are_sampled_at_random),
		cmocka_unit_test(a_wait_is_written_once),
		cmocka_unit_test(a_wait_without_a_stack_is_walked_at_its_end),
		cmocka_unit_test(a_wait_that_has_not_ended_is_told_at_the_end),
		cmocka_unit_test(a_virtual_thread_is_walked_before_its_wait),
		cmocka_unit_test(too_many_virtual_threads_are_not_walked),
		cmocka_unit_test(a_wait_for_a_lock_is_shown),
		cmocka_unit_test(releases_of_sampled_waits_are_of_interest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
