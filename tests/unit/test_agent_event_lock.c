/* SPDX-License-Identifier: MIT */
/* Which parks are waits for a lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event_lock.c"

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

void wait_event_open(struct wait_event *event, const struct duet_agent_event *from)
{
	(void)event, (void)from;
}

void wait_event_close(struct wait_event *event, uint64_t ended_ns)
{
	(void)event, (void)ended_ns;
}

bool wait_event_is_open(const struct wait_event *event)
{
	(void)event;
	return false;
}

uint64_t wait_key(JNIEnv *env, jthread thread)
{
	(void)env, (void)thread;
	return 0;
}

char *wait_class(JNIEnv *env, jobject object)
{
	(void)env, (void)object;
	return NULL;
}

void wait_begins(struct wait_event *event, struct stay *stay, uint64_t key, const char *class_name)
{
	(void)event, (void)stay, (void)key, (void)class_name;
}

void wait_ends(struct wait_event *event, struct stay *stay, uint64_t key)
{
	(void)event, (void)stay, (void)key;
}

int parks_open(const struct park_listener *listener)
{
	(void)listener;
	return 0;
}

void parks_close(const struct park_listener *listener)
{
	(void)listener;
}

static void locks_are_known_by_their_class(void **state)
{
	(void)state;
	assert_true(lock_parks_for("Ljava/util/concurrent/locks/ReentrantLock$FairSync;"));
	assert_true(lock_parks_for("Ljava/util/concurrent/locks/ReentrantReadWriteLock$NonfairSync;"));
	assert_true(lock_parks_for("Ljava/util/concurrent/locks/StampedLock;"));
	assert_true(lock_parks_for("Ljava/util/concurrent/Semaphore$FairSync;"));
}

static void other_parks_are_not(void **state)
{
	(void)state;
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
