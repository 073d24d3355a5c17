/* SPDX-License-Identifier: MIT */
/* Which parks are waits for a lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event/lock.c"

int monitors_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	return 0;
}

void monitors_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
}

void monitors_begin_wait(struct wait_event *event, JNIEnv *env, jthread thread, jobject object)
{
	(void)event, (void)env, (void)thread, (void)object;
}

void monitors_end_wait(struct wait_event *event, JNIEnv *env, jthread thread)
{
	(void)event, (void)env, (void)thread;
}

bool registering_on_wait(JNIEnv *env)
{
	return false;
}

static void locks_are_known_by_their_class(void **state)
{
	assert_true(lock_parks_for("Ljava/util/concurrent/locks/ReentrantLock$FairSync;"));
	assert_true(lock_parks_for("Ljava/util/concurrent/locks/ReentrantReadWriteLock$NonfairSync;"));
	assert_true(lock_parks_for("Ljava/util/concurrent/locks/StampedLock;"));
	assert_true(lock_parks_for("Ljava/util/concurrent/Semaphore$FairSync;"));
}

static void other_parks_are_not(void **state)
{
	assert_false(lock_parks_for(NULL));
	assert_false(lock_parks_for("Ljava/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject;"));
	assert_false(lock_parks_for("Ljava/util/concurrent/CountDownLatch$Sync;"));
	assert_false(lock_parks_for("Ljava/util/concurrent/SemaphoreLike;"));
	assert_false(lock_parks_for("Lmy/ReentrantLock$Sync;"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_are_known_by_their_class),
		cmocka_unit_test(other_parks_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
