/* SPDX-License-Identifier: MIT */
/* Threads that wait for another thread's notice: Object.wait(), and all parks that are not waits for a lock. */
#include "method/natives.h"
#include "tap.h"
#include "wait/monitors.h"
#include "wait/waiting.h"

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

static void wait_add_callbacks(jvmtiEventCallbacks *callbacks)
{
	callbacks->MonitorWait = on_wait;
	callbacks->MonitorWaited = on_waited;
}

static bool wants_park(const char *class_name)
{
	return !lock_parks_for(class_name);
}

static const struct park_listener other_parks = {&notice, wants_park};

static const struct monitor_waits waits = {
	&other_parks,
	JVMTI_EVENT_MONITOR_WAIT,
	JVMTI_EVENT_MONITOR_WAITED,
};

static void wait_stop(uint64_t ended_ns)
{
	monitors_stop(&waits, ended_ns);
}

static int wait_start(const struct duet_agent_event *event, const char **ret_why)
{
	*ret_why = "the JVM refuses to report waiting threads";
	return monitors_start(&waits, event);
}

const struct agent_tap tap_wait = {
	.kind = DUET_AGENT_EVENT_WAIT,
	.needs = {.can_generate_monitor_events = 1},
	.refused = "another agent in this JVM has the events of monitors, and only one can",
	.add_callbacks = wait_add_callbacks,
	.start = wait_start,
	.stop = wait_stop,
};
