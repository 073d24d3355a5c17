/* SPDX-License-Identifier: MIT */
/* The parts of a wait for a lock: who released the lock, and for how long that one had held it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "join/holders.h"
#include "proc/process.h"
#include "proc/room.h"

#define LOCK 7
#define NOW (1000ull * 1000 * 1000 * 1000)

static struct process process = {.pid = 10, .start_ticks = 5}, other = {.pid = 10, .start_ticks = 6};
static struct holders holders;
static struct holding parts[HOLDERS_PARTS];

static int release(void **state)
{
	holders_release(&holders);
	holders = (struct holders){0};
	return 0;
}

static void released_in(struct process *by, uint32_t tid, uint64_t lock, uint64_t time_ns, uint32_t bytes)
{
	struct duet_sample *sample = calloc(1, bytes);

	assert_non_null(sample);
	sample->head = (struct duet_record){.size = bytes, .time_ns = time_ns, .tid = tid};
	sample->ns_tid = tid;
	sample->role = DUET_ROLE_HOLDER;
	sample->waker = lock;
	holders_add(&holders, &(struct decision){.process = by, .sample = sample}, NOW);
	free(sample);
}

static void released(uint32_t tid, uint64_t lock, uint64_t time_ns)
{
	released_in(&process, tid, lock, time_ns, sizeof(struct duet_sample));
}

/* Splits a wait of a thread of the process for the lock, which thread `owner` had when it began. */
static size_t split_owned(struct process *in, uint64_t begin_ns, uint64_t end_ns, uint32_t owner)
{
	size_t count;
	struct {
		struct duet_sample sample;
		struct duet_attribute head;
		struct duet_lock lock;
	} wait = {
		.sample = {.head = {.size = sizeof(wait), .time_ns = end_ns}},
		.head = {.type = DUET_ATTRIBUTE_LOCK, .bytes = sizeof(struct duet_lock)},
		.lock = {.id = LOCK, .begin_ns = begin_ns, .owner = owner},
	};
	struct decision decision = {.process = in, .sample = &wait.sample};

	wait.sample.attribute_bytes = sizeof(wait.head) + sizeof(wait.lock);
	count = holders_split(&holders, &decision, parts);
	holders_add_wait(&holders, &decision, NOW);
	return count;
}

static size_t split(struct process *in, uint64_t begin_ns, uint64_t end_ns)
{
	return split_owned(in, begin_ns, end_ns, 0);
}

static void expect_part(size_t i, uint32_t tid, uint64_t ns)
{
	assert_int_equal(parts[i].owner, tid);
	assert_int_equal(parts[i].ns, ns);
}

static void a_wait_has_a_part_for_each_release(void **state)
{
	released(1, LOCK, 99);
	released(2, LOCK, 140);
	released(4, LOCK + 1, 150);
	released(3, LOCK, 180);
	released(5, LOCK, 201);
	assert_int_equal(split(&process, 99, 200), 2);
	expect_part(0, 2, 41);
	expect_part(1, 3, 60); /* with the time from the release to the end */
	assert_int_equal(split(&process, 141, 179), 0);
	assert_int_equal(split(&process, 200, 99), 0);
}

static void records_may_come_out_of_order(void **state)
{
	released(3, LOCK, 180);
	released(1, LOCK, 120);
	released(2, LOCK, 150);
	assert_int_equal(split(&process, 100, 180), 3);
	expect_part(0, 1, 20);
	expect_part(1, 2, 30);
	expect_part(2, 3, 30);
}

/* A thread gets the lock while it is awake, so that nobody wakes it. */
static void a_wait_that_nobody_ended_shows_the_owner(void **state)
{
	assert_int_equal(split_owned(&process, 100, 150, 9), 1);
	expect_part(0, 9, 50);
	assert_null(parts[0].by);
	released(1, LOCK, 180);
	assert_int_equal(split(&process, 120, 180), 2); /* of another thread that waited meanwhile */
	expect_part(0, 9, 30);
	expect_part(1, 1, 30);
	assert_non_null(parts[1].by);
	assert_int_equal(split_owned(&process, 160, 190, 9), 1);
	expect_part(0, 1, 30);
}

static void the_future_is_not_kept(void **state)
{
	assert_int_equal(split_owned(&process, NOW, NOW + 50, 9), 1);
	assert_int_equal(room_held(ROOM_HOLDERS, &process.payer), 0);
}

static void a_lock_belongs_to_one_process(void **state)
{
	released(1, LOCK, 150);
	assert_int_equal(split(&other, 100, 200), 0);
	assert_int_equal(split(&process, 100, 200), 1);
}

static void a_record_holds_its_process(void **state)
{
	released(1, LOCK, NOW - 100);
	assert_int_equal(process.references, 1);
	holders_sweep(&holders, NOW + HOLDERS_KEEP_NS / 2);
	assert_int_equal(process.references, 1);
	holders_sweep(&holders, NOW + HOLDERS_KEEP_NS);
	assert_int_equal(process.references, 0);
	assert_int_equal(room_held(ROOM_HOLDERS, &process.payer), 0);
}

/* The stack of the release belongs to a program whose functions can no longer be named. */
static void after_an_exec_only_the_thread_is_known(void **state)
{
	released(1, LOCK, 150);
	process.programs++;
	assert_int_equal(split(&process, 100, 200), 1);
	assert_null(parts[0].by);
	assert_int_equal(parts[0].owner, 1);
}

/* Two threads release the lock in turn; one holds it three times as long. */
static void of_many_releases_some_are_looked_at(void **state)
{
	uint64_t sums[3] = {0}, time_ns = 0;
	size_t count;

	for (int i = 0; i < 6400; i++) {
		released(1, LOCK, time_ns += 25);
		released(2, LOCK, time_ns += 75);
	}
	count = split(&process, 13, time_ns);
	assert_int_equal(count, HOLDERS_PARTS);
	for (size_t i = 0; i < count; i++)
		sums[parts[i].owner] += parts[i].ns;
	assert_true(sums[1] + sums[2] > time_ns * 99 / 100);
}

static void old_releases_and_too_many_of_them_are_removed(void **state)
{
	released(1, LOCK, NOW - HOLDERS_KEEP_NS - 1);
	released(2, LOCK, NOW - 1000);
	holders.swept_ns = 0;
	released(3, LOCK, NOW - 900);
	assert_int_equal(split(&process, NOW - HOLDERS_KEEP_NS - 2, NOW), 2);
	for (int i = 0; i < 2000; i++)
		released_in(&process, 4, LOCK, NOW - 800 + (uint64_t)i % 8, 100000);
	assert_in_range(room_held(ROOM_HOLDERS, &process.payer), 1, 64u << 20);
	for (int i = 0; i < 2000; i++)
		released_in(&process, 4, LOCK, NOW + 1000, 100000);
	assert_in_range(room_held(ROOM_HOLDERS, &process.payer), 1, 64u << 20);
}

/* One user's releases make room for his own, and not for those of another one. */
static void a_users_releases_leave_room_for_others(void **state)
{
	struct process busy = {.pid = 11, .start_ticks = 5, .payer = {1, 1}};

	room_open(true);
	process.payer = (struct payer){2, 2};
	released(1, LOCK, NOW - 2000);
	for (uint64_t i = 0; i < 4000; i++)
		released_in(&busy, 4, LOCK, NOW - 4000 + i, 100000);
	assert_in_range(room_held(ROOM_HOLDERS, &busy.payer), 16u << 20, 48u << 20);
	released(2, LOCK, NOW - 1000);
	assert_int_equal(split(&process, NOW - 3000, NOW), 2);
	holders_release(&holders);
	process.payer = (struct payer){0};
	room_open(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_wait_has_a_part_for_each_release, release),
		cmocka_unit_test_teardown(records_may_come_out_of_order, release),
		cmocka_unit_test_teardown(a_wait_that_nobody_ended_shows_the_owner, release),
		cmocka_unit_test_teardown(the_future_is_not_kept, release),
		cmocka_unit_test_teardown(a_lock_belongs_to_one_process, release),
		cmocka_unit_test_teardown(a_record_holds_its_process, release),
		cmocka_unit_test_teardown(after_an_exec_only_the_thread_is_known, release),
		cmocka_unit_test_teardown(of_many_releases_some_are_looked_at, release),
		cmocka_unit_test_teardown(old_releases_and_too_many_of_them_are_removed, release),
		cmocka_unit_test_teardown(a_users_releases_leave_room_for_others, release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
