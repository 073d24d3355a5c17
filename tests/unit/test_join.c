/* SPDX-License-Identifier: MIT */
/*
 * The join is compared with known truth: every sample and every record carries the number of the user-mode state in
 * which it was taken, so a wrong pair is detected. pc and sp are equal on purpose most of the time: the join must not
 * depend on them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/counters.h"
#include "join/join.h"

#define TID 7
#ifdef __x86_64__
#define SYSCALL_BYTES 2
#else
#define SYSCALL_BYTES 4
#endif
#define SAMPLES 4000
#define WHOLE DUET_SAMPLE_USER_COMPLETE

struct outcome_count {
	unsigned joined, wrong, no_record, mismatch, not_signalled, walked;
};

static struct process process_a, process_b;
static struct origin owner_a = {.process = &process_a}, owner_b = {.process = &process_b};

static void count(void *context, struct origin *owner, const struct duet_sample *sample,
		  const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct outcome_count *counts = context;

	assert_true(owner == &owner_a || owner == &owner_b);
	counts->joined += outcome == JOIN_JOINED;
	counts->no_record += outcome == JOIN_NO_RECORD;
	counts->mismatch += outcome == JOIN_MISMATCH;
	counts->not_signalled += outcome == JOIN_NOT_SIGNALLED;
	counts->walked += outcome == JOIN_WALKED;
	if (outcome == JOIN_JOINED) /* the state's number travels in fields the join does not read */
		counts->wrong += sample->cgroup_id != (uint64_t)java->status;
}

static struct duet_sample sample_at(uint64_t time_ns, uint16_t flags, uint64_t cookie, uint64_t state)
{
	return (struct duet_sample){
		.head = {.size = sizeof(struct duet_sample),
			 .type = DUET_RECORD_SAMPLE,
			 .time_ns = time_ns,
			 .tid = 100 + TID},
		.ns_tid = TID,
		.flags = flags | DUET_SAMPLE_USER_REGS | DUET_SAMPLE_JVM,
		.cookie = cookie,
		.user_pc = 0x1000,
		.user_sp = 0x7000,
		.cgroup_id = state,
	};
}

static struct duet_java_sample record_at(uint64_t time_ns, uint64_t cookie, uint64_t state)
{
	return (struct duet_java_sample){
		.time_ns = time_ns, .cookie = cookie, .pc = 0x1000, .sp = 0x7000, .tid = TID, .status = (int32_t)state};
}

static void offer(struct join *join, struct duet_java_sample record, uint64_t now)
{
	assert_int_equal(join_offer(join, &owner_a, &record, sizeof(record), now), 0);
}

static void sample(struct join *join, struct duet_sample taken, uint64_t now)
{
	assert_int_equal(join_sample(join, &owner_a, &taken, now), 0);
}

static int forget_losses(void **state)
{
	memset(loader_counters, 0, sizeof(loader_counters));
	return 0;
}

static void test_cookie_pairs(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 11, 1), 100);
	sample(join, sample_at(200, DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 12, 2), 200);
	offer(join, record_at(210, 12, 2), 300);
	join_run(join, 300);
	assert_int_equal(counts.joined, 1);
	offer(join, record_at(110, 11, 1), 400);
	join_run(join, 400);
	assert_int_equal(counts.joined, 2);
	assert_int_equal(counts.wrong, 0);
	join_free(join);
}

static void test_pending_samples_share(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 11, 1), 100);
	sample(join, sample_at(200, DUET_SAMPLE_PENDING, 0, 1), 200);
	sample(join, sample_at(300, DUET_SAMPLE_PENDING, 0, 1), 300);
	offer(join, record_at(310, 11, 1), 400);
	join_run(join, 400);
	assert_int_equal(counts.joined, 3);
	join_free(join);
}

/*
 * Without a signal, or with one that has no record: the walk's frames are not lost. Such a sample waits for its record,
 * too.
 */
static void test_walked_samples_need_no_record(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(100, WHOLE, 0, 1), 100);
	sample(join, sample_at(200, WHOLE | DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 12, 2), 200);
	join_run(join, 300);
	assert_int_equal(counts.walked, 1);
	offer(join, record_at(210, 12, 2), 400);
	join_run(join, 400);
	assert_int_equal(counts.joined, 1);
	sample(join, sample_at(500, WHOLE | DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 13, 3), 500);
	join_flush(join, NULL);
	assert_int_equal(counts.walked, 2);
	for (size_t i = 0; i < DUET_LOADER_COUNTER_MAX; i++)
		assert_int_equal(loader_counters[i], 0);
	join_free(join);
}

static void test_interval_excludes_the_next(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	/* The first sample's record is lost. The second's record must not be used for it, even if the pcs are equal. */
	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED, 0, 1), 100);
	sample(join, sample_at(200, DUET_SAMPLE_SIGNALLED, 0, 2), 200);
	offer(join, record_at(210, 0, 2), 300);
	join_flush(join, &process_a);
	assert_int_equal(counts.joined, 1);
	assert_int_equal(counts.no_record, 1);
	assert_int_equal(counts.wrong, 0);
	join_free(join);
}

/* Both halves of a sample from a callback come from the agent. They have no effect on BPF's samples around them. */
static void test_callbacks_stand_aside(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(200, DUET_SAMPLE_SIGNALLED, 0, 1), 200);
	/* the sample began before, and arrived after */
	sample(join, sample_at(100, DUET_SAMPLE_CALLED | DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 100, 2), 210);
	sample(join, sample_at(220, DUET_SAMPLE_PENDING, 0, 1), 220);
	offer(join, record_at(100, 100, 2), 300);
	offer(join, record_at(230, 0, 1), 300);
	join_run(join, 300);
	assert_int_equal(counts.joined, 3);
	assert_int_equal(counts.wrong, 0);
	join_free(join);
}

static void test_pc_decides(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);
	struct duet_java_sample elsewhere = record_at(110, 11, 1);

	elsewhere.sp = 0x7008;
	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 11, 1), 100);
	offer(join, elsewhere, 200);
	join_run(join, 200);
	assert_int_equal(counts.mismatch, 1);
	assert_int_equal(loader_counters[DUET_LOADER_PC_MISMATCH], 1);
	join_free(join);
}

static unsigned mismatches(uint16_t flags, uint64_t sample_pc)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);
	struct duet_sample taken = sample_at(100, DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE | flags, 11, 1);

	taken.user_pc = sample_pc;
	sample(join, taken, 100);
	offer(join, record_at(110, 11, 1), 200);
	join_run(join, 200);
	join_free(join);
	return counts.mismatch;
}

static void test_restarted_system_call_is_the_same_place(void **state)
{
	assert_int_equal(mismatches(DUET_SAMPLE_KERNEL, 0x1000 + SYSCALL_BYTES), 0);
	assert_int_equal(mismatches(0, 0x1000 + SYSCALL_BYTES), 1); /* in user mode it is another instruction */
	assert_int_equal(mismatches(DUET_SAMPLE_KERNEL, 0x1000 + SYSCALL_BYTES + 1), 1);
	assert_int_equal(mismatches(DUET_SAMPLE_KERNEL, 0x1000 - SYSCALL_BYTES), 1);
}

static void test_waits_then_gives_up(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED, 0, 1), 100);
	join_run(join, 100 + JOIN_WAIT_NS);
	assert_int_equal(counts.no_record, 0);
	join_run(join, 101 + JOIN_WAIT_NS);
	assert_int_equal(counts.no_record, 1);
	offer(join, record_at(110, 0, 1), 200 + JOIN_WAIT_NS);
	join_flush(join, NULL);
	assert_int_equal(counts.joined, 0);
	assert_int_equal(loader_counters[DUET_LOADER_ORPHAN_RECORD], 1);
	join_free(join);
}

/* A window can be written when no sample of its time is held any more. */
static void test_the_oldest_is_told(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	assert_true(join_oldest_ns(join) == UINT64_MAX && !owner_a.references);
	offer(join, record_at(40, 0, 1), 90); /* half a sample does not count */
	assert_true(join_oldest_ns(join) == UINT64_MAX && owner_a.awaited && owner_a.references &&
		    !owner_b.references);
	sample(join, sample_at(120, DUET_SAMPLE_SIGNALLED, 0, 1), 120);
	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED, 0, 1), 130);
	assert_true(join_oldest_ns(join) == 100);
	join_flush(join, NULL);
	assert_true(join_oldest_ns(join) == UINT64_MAX && !owner_a.awaited && !owner_a.references);
	join_free(join);
}

static void test_clock_read_before_arrival(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED, 0, 1), 500);
	join_run(join, 400);
	assert_int_equal(counts.no_record, 0);
	join_free(join);
}

static void test_not_signalled_is_said_at_once(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);

	sample(join, sample_at(100, 0, 0, 1), 100);
	join_run(join, 100);
	assert_int_equal(counts.not_signalled, 1);
	join_free(join);
}

static void test_owners_do_not_mix(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);
	struct duet_java_sample record = record_at(110, 11, 2);

	sample(join, sample_at(100, DUET_SAMPLE_SIGNALLED | DUET_SAMPLE_COOKIE, 11, 1), 100);
	assert_int_equal(join_offer(join, &owner_b, &record, sizeof(record), 120), 0);
	join_flush(join, NULL);
	assert_int_equal(counts.joined, 0);
	join_free(join);
}

/* ---- delayed, dropped and reordered records ---- */

struct trace_event {
	uint64_t now;
	bool is_sample;
	struct duet_sample sample;
	struct duet_java_sample record;
};

static int by_time(const void *a, const void *b)
{
	const struct trace_event *left = a, *right = b;

	return left->now < right->now ? -1 : left->now > right->now;
}

/* A thread that is sampled every 1 to 3 ms; every fourth sample falls while the signal is pending. */
static size_t make_trace(struct trace_event *events, bool cookies, unsigned drop, unsigned delay_ms)
{
	uint64_t time = NS_PER_SEC, state = 0, cookie = 0;
	size_t count_events = 0;

	for (int i = 0; i < SAMPLES; i++) {
		bool pending = i && rand() % 4 == 0;
		uint64_t arrives, jitter = delay_ms ? (uint64_t)rand() % (delay_ms * NS_PER_MS) : 0;

		time += NS_PER_MS + (uint64_t)rand() % (2 * NS_PER_MS);
		if (!pending) {
			state++;
			cookie = cookies ? time : 0;
		}
		events[count_events++] = (struct trace_event){
			.now = time,
			.is_sample = true,
			.sample = sample_at(
				time,
				pending ? DUET_SAMPLE_PENDING
					: (uint16_t)(DUET_SAMPLE_SIGNALLED | (cookies ? DUET_SAMPLE_COOKIE : 0)),
				pending ? 0 : cookie, state),
		};
		if (rand() % 100 < (int)drop)
			continue;
		/* Handled a moment later; a pending sample replaces its group's record by a later one. */
		arrives = time + NS_PER_US * 40;
		if (pending && count_events >= 2 && !events[count_events - 2].is_sample)
			events[count_events - 2] = events[count_events - 1], count_events--;
		events[count_events++] =
			(struct trace_event){.now = arrives + jitter, .record = record_at(arrives, cookie, state)};
	}
	qsort(events, count_events, sizeof(*events), by_time);
	return count_events;
}

static struct outcome_count play(bool cookies, unsigned drop, unsigned delay_ms)
{
	struct trace_event *events = calloc(2 * SAMPLES + 2, sizeof(*events));
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);
	size_t events_len = make_trace(events, cookies, drop, delay_ms);

	for (size_t i = 0; i < events_len; i++) {
		if (events[i].is_sample)
			sample(join, events[i].sample, events[i].now);
		else
			offer(join, events[i].record, events[i].now);
		if (i % 64 == 0)
			join_run(join, events[i].now);
	}
	join_flush(join, NULL);
	join_free(join);
	free(events);
	assert_int_equal(counts.joined + counts.no_record + counts.mismatch, SAMPLES);
	return counts;
}

static void test_undisturbed_joins_all(void **state)
{
	for (int cookies = 0; cookies < 2; cookies++) {
		struct outcome_count counts = play(cookies, 0, 0);

		assert_int_equal(counts.wrong, 0);
		assert_int_equal(counts.joined, SAMPLES);
	}
}

static void test_disturbed_never_joins_wrong(void **state)
{
	for (int cookies = 0; cookies < 2; cookies++)
		for (unsigned drop = 0; drop <= 60; drop += 20)
			for (unsigned delay = 0; delay <= 300; delay += 100) {
				struct outcome_count counts = play(cookies, drop, delay);

				assert_int_equal(counts.wrong, 0);
				assert_true(counts.joined > SAMPLES / 10);
			}
}

static void test_flood_is_bounded(void **state)
{
	struct outcome_count counts = {0};
	struct join *join = join_new(count, &counts);
	struct duet_java_sample record = record_at(100, 0, 1);
	uint64_t dropped;

	for (uint32_t i = 0; i < 2 * JOIN_MAX_THREAD_RECORDS; i++)
		join_offer(join, &owner_a, &record, sizeof(record), 100);
	dropped = loader_counters[DUET_LOADER_RECORDS_FULL];
	assert_int_equal(dropped, JOIN_MAX_THREAD_RECORDS);
	for (uint32_t i = 0; i < 1000000; i++) {
		record.tid = TID + 1 + i;
		join_offer(join, &owner_a, &record, sizeof(record), 100);
	}
	dropped = loader_counters[DUET_LOADER_RECORDS_FULL];
	assert_in_range(dropped, 800000, 1016384);
	/* The other JVM is not affected, and after the flood this JVM is not either. */
	assert_int_equal(join_offer(join, &owner_b, &record, sizeof(record), 100), 0);
	join_run(join, 101 + JOIN_WAIT_NS);
	assert_int_equal(join_offer(join, &owner_a, &record, sizeof(record), 100), 0);
	join_free(join);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_cookie_pairs, forget_losses),
		cmocka_unit_test_setup(test_flood_is_bounded, forget_losses),
		cmocka_unit_test_setup(test_pending_samples_share, forget_losses),
		cmocka_unit_test_setup(test_walked_samples_need_no_record, forget_losses),
		cmocka_unit_test_setup(test_interval_excludes_the_next, forget_losses),
		cmocka_unit_test_setup(test_callbacks_stand_aside, forget_losses),
		cmocka_unit_test_setup(test_pc_decides, forget_losses),
		cmocka_unit_test_setup(test_restarted_system_call_is_the_same_place, forget_losses),
		cmocka_unit_test_setup(test_waits_then_gives_up, forget_losses),
		cmocka_unit_test_setup(test_the_oldest_is_told, forget_losses),
		cmocka_unit_test_setup(test_clock_read_before_arrival, forget_losses),
		cmocka_unit_test_setup(test_not_signalled_is_said_at_once, forget_losses),
		cmocka_unit_test_setup(test_owners_do_not_mix, forget_losses),
		cmocka_unit_test_setup(test_undisturbed_joins_all, forget_losses),
		cmocka_unit_test_setup(test_disturbed_never_joins_wrong, forget_losses),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
