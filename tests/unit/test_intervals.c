/* SPDX-License-Identifier: MIT */
/* Samples within spans and calls, and by the thread's state. */
#include "fixtures/profiles.h"

#include "profile/intervals.h"
#include "profile/merge.h"
#include "profile/profile.h"

static struct profile p;
static uint32_t thread, renamed, other;

static uint32_t add(const char *event, uint64_t end_ms, uint64_t length_ms, uint32_t of, enum frame_kind kind,
		    const char *frame)
{
	uint32_t frames[] = {frame_of(&p, kind, frame, "")};
	const struct profile_sample sample = {
		.time_ns = end_ms * MS,
		.weight = length_ms * MS,
		.thread = of,
		.node = profile_stack(&p, frames, 1),
		.count = 1,
		.event = profile_event(&p, event, PROFILE_NS, 0),
	};

	assert_int_equal(profile_add(&p, &sample), 0);
	return sample.event;
}

static int setup(void **state)
{
	assert_int_equal(profile_init(&p), 0);
	thread = profile_thread(&p, 1, 2, "main", "java", 0);
	renamed = profile_thread(&p, 1, 2, "main again", "java", 0);
	other = profile_thread(&p, 1, 3, "other", "java", 0);
	for (uint64_t ms = 5; ms < 100; ms += 10) {
		(void)add("cpu", ms, 10, ms < 50 ? thread : renamed, FRAME_NATIVE, "main");
		(void)add("cpu", ms, 10, other, FRAME_NATIVE, "other");
	}
	return 0;
}

static int teardown(void **state)
{
	profile_release(&p);
	return 0;
}

static int count_cpu(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context += sample->event == 0;
	return 0;
}

/* The number of the samples of CPU time that are chosen. */
static uint64_t chosen(uint64_t least_ms, const char *tag, uint32_t states)
{
	struct intervals intervals = {.profile = &p, .least_ns = least_ms * MS, .tag = tag};
	struct profile_part part = {
		.until_ns = UINT64_MAX, .event = UINT32_MAX, .also = UINT32_MAX, .freed = UINT32_MAX, .states = states};
	struct profile cut;
	uint64_t count = 0;
	struct buf why;

	buf_init(&why);
	assert_int_equal(profile_init(&cut), 0);
	assert_int_equal(intervals_find(&intervals), 0);
	part.within = states ? NULL : &intervals;
	assert_int_equal(profile_cut(&cut, &p, &part, &why), 0);
	assert_int_equal(timeline_each(&cut.samples, count_cpu, &count), 0);
	intervals_release(&intervals);
	profile_release(&cut);
	buf_release(&why);
	return count;
}

static void within_spans(void **state)
{
	assert_int_equal(chosen(0, NULL, 0), 0);
	(void)add("span", 30, 20, thread, FRAME_SPAN, "a"); /* 15, 25 */
	(void)add("span", 50, 40, thread, FRAME_SPAN, "b"); /* 15 to 45, around it */
	(void)add("span", 70, 10, thread, FRAME_SPAN, "a"); /* 65, of the thread's later name */
	(void)add("trace:a.B.c", 100, 10, other, FRAME_NATIVE, "c"); /* 95 */
	assert_int_equal(chosen(0, NULL, 0), 6);
	assert_int_equal(chosen(20, NULL, 0), 4);
	assert_int_equal(chosen(40, NULL, 0), 4);
	assert_int_equal(chosen(41, NULL, 0), 0);
	assert_int_equal(chosen(0, "a", 0), 3);
	assert_int_equal(chosen(20, "a", 0), 2);
	assert_int_equal(chosen(0, "b", 0), 4);
	assert_int_equal(chosen(0, "nothing", 0), 0);
}

static enum thread_state state_of_last(void)
{
	return thread_state_of(&p, &p.samples.recent.items[p.samples.recent.len - 1]);
}

static void states(void **state)
{
	assert_int_equal(state_of_last(), THREAD_DEFAULT);
	p.samples.recent.items[p.samples.recent.len - 1].address = THREAD_SLEEPING;
	assert_int_equal(state_of_last(), THREAD_SLEEPING);
	assert_int_equal(chosen(0, NULL, 1u << THREAD_DEFAULT), 19);
	assert_int_equal(chosen(0, NULL, 1u << THREAD_SLEEPING), 1);
	(void)add("offcpu", 10, 10, thread, FRAME_STATE, "[futex]");
	assert_int_equal(state_of_last(), THREAD_SLEEPING);
	(void)add("wall", 10, 10, thread, FRAME_STATE, "[runnable]");
	assert_int_equal(state_of_last(), THREAD_RUNNABLE);
	(void)add("wall", 10, 10, thread, FRAME_NATIVE, "main");
	assert_int_equal(state_of_last(), THREAD_RUNNABLE);
	(void)add("lock", 10, 10, thread, FRAME_NATIVE, "main");
	assert_int_equal(state_of_last(), THREAD_STATE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(within_spans, setup, teardown),
		cmocka_unit_test_setup_teardown(states, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
