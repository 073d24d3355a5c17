/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for a lock: to enter synchronized code, and in java.util.concurrent.locks. The JVM calls the agent
 * for monitors for which spinning was not enough: before the thread blocks, and when it has the lock. And threads that
 * wait for another thread's notice: Object.wait(), and all parks that are not waits for a lock.
 */
#include <stddef.h>
#include <string.h>

#include "method/natives.h"
#include "tap.h"
#include "wait/monitors.h"
#include "wait/waiting.h"

static struct waits lock_waits;
static struct wait_event lock = {.has_lock = true, .waits = &lock_waits};

static void JNICALL on_enter(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject monitor)
{
	monitors_begin_wait(&lock, env, thread, monitor);
}

static void JNICALL on_entered(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject monitor)
{
	monitors_end_wait(&lock, env, thread);
}

static bool lock_parks_for(const char *class_name)
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

static struct monitor_waits contention = {
	&parks_for_locks,
	JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
	JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
	"the JVM refuses to report waits for locks",
};

const struct agent_tap tap_lock = {
	.kind = DUET_AGENT_EVENT_LOCK,
	.needs = {.can_generate_monitor_events = 1},
	.refused = "another agent in this JVM has the events of locks, and only one can",
	.callbacks = {.MonitorContendedEnter = on_enter, .MonitorContendedEntered = on_entered},
	.start = monitors_start,
	.stop = monitors_stop,
	.own = &contention,
};

static struct waits notice_waits;
static struct wait_event notice = {.waits = &notice_waits};

static void JNICALL on_wait(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jlong timeout)
{
	if (!registering_on_wait(env))
		monitors_begin_wait(&notice, env, thread, object);
}

/* Called before the thread takes the monitor again; that is a wait for a lock. */
static void JNICALL on_waited(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jboolean timed_out)
{
	monitors_end_wait(&notice, env, thread);
}

static bool wants_park(const char *class_name)
{
	return !lock_parks_for(class_name);
}

static const struct park_listener other_parks = {&notice, wants_park};

static struct monitor_waits notices = {
	&other_parks,
	JVMTI_EVENT_MONITOR_WAIT,
	JVMTI_EVENT_MONITOR_WAITED,
	"the JVM refuses to report waiting threads",
};

const struct agent_tap tap_wait = {
	.kind = DUET_AGENT_EVENT_WAIT,
	.needs = {.can_generate_monitor_events = 1},
	.refused = "another agent in this JVM has the events of monitors, and only one can",
	.callbacks = {.MonitorWait = on_wait, .MonitorWaited = on_waited},
	.start = monitors_start,
	.stop = monitors_stop,
	.own = &notices,
};
