/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for a lock: to enter synchronized code, and in java.util.concurrent.locks. The JVM calls the agent
 * for monitors for which spinning was not enough: before the thread blocks, and when it has the lock.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "jvm.h"
#include "parks.h"
#include "stay.h"
#include "tap.h"
#include "waiting.h"

static struct wait_event lock = {.has_lock = true};

/* ---- monitors ---- */

static void JNICALL on_enter(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject monitor)
{
	struct stay *stay = stay_enter();
	uint64_t key = stay && wait_event_is_open(&lock) ? wait_key(env, thread) : 0;
	char *class_name;

	(void)jvmti;
	if (key) {
		class_name = wait_class(env, monitor);
		wait_begins(&lock, stay, key, class_name);
		jvm_deallocate(class_name);
	}
	stay_leave();
}

static void JNICALL on_entered(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject monitor)
{
	struct stay *stay = stay_enter();
	uint64_t key = stay && wait_event_is_open(&lock) ? wait_key(env, thread) : 0;

	(void)jvmti, (void)monitor;
	if (key)
		wait_ends(&lock, stay, key);
	stay_leave();
}

static void lock_add_callbacks(jvmtiEventCallbacks *callbacks)
{
	callbacks->MonitorContendedEnter = on_enter;
	callbacks->MonitorContendedEntered = on_entered;
}

static bool set_events(jvmtiEventMode mode)
{
	jvmtiError enter, entered;

	enter = (*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_MONITOR_CONTENDED_ENTER, NULL);
	entered = (*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED, NULL);
	return !enter && !entered;
}

/* ---- locks whose threads park ---- */

bool lock_parks_for(const char *class_name)
{
	static const char *const synchronizers[] = {
		"Ljava/util/concurrent/locks/ReentrantLock$",
		"Ljava/util/concurrent/locks/ReentrantReadWriteLock$",
		"Ljava/util/concurrent/locks/StampedLock;",
		"Ljava/util/concurrent/Semaphore$",
	};

	for (size_t i = 0; class_name && i < sizeof(synchronizers) / sizeof(synchronizers[0]); i++)
		if (!strncmp(class_name, synchronizers[i], strlen(synchronizers[i])))
			return true;
	return false;
}

static const struct park_listener parks_for_locks = {&lock, lock_parks_for};

/* ---- the tap ---- */

static void lock_stop(uint64_t ended_ns)
{
	wait_event_close(&lock, ended_ns);
	set_events(JVMTI_DISABLE);
	parks_close(&parks_for_locks);
}

static int lock_start(const struct duet_agent_event *event, const char **ret_why)
{
	*ret_why = "the JVM refuses to tell of locks";
	if (!jvm.thread_id)
		return -ENOTSUP;
	wait_event_open(&lock, event);
	if (set_events(JVMTI_ENABLE) && !parks_open(&parks_for_locks))
		return 0;
	lock_stop(0);
	return -ENOTSUP;
}

const struct agent_tap tap_lock = {
	.kind = DUET_AGENT_EVENT_LOCK,
	.first_version = 8,
	.needs = {.can_generate_monitor_events = 1},
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "another agent in this JVM has the events of locks, and only one can",
	.add_callbacks = lock_add_callbacks,
	.start = lock_start,
	.stop = lock_stop,
};
