/* SPDX-License-Identifier: MIT */
/* Threads that wait for another thread's notice: Object.wait(), and all parks that are not waits for a lock. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "jvm.h"
#include "parks.h"
#include "stay.h"
#include "tap.h"
#include "waiting.h"

static struct wait_event notice;

static void JNICALL on_wait(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jlong timeout)
{
	struct stay *stay = stay_enter();
	uint64_t key = stay && wait_event_is_open(&notice) ? wait_key(env, thread) : 0;
	char *class_name;

	(void)jvmti, (void)timeout;
	parks_on_wait(env);
	if (key) {
		class_name = wait_class(env, object);
		wait_begins(&notice, stay, key, class_name);
		jvm_deallocate(class_name);
	}
	stay_leave();
}

/* Called before the thread takes the monitor again; that is a wait for a lock. */
static void JNICALL on_waited(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jboolean timed_out)
{
	struct stay *stay = stay_enter();
	uint64_t key = stay && wait_event_is_open(&notice) ? wait_key(env, thread) : 0;

	(void)jvmti, (void)object, (void)timed_out;
	if (key)
		wait_ends(&notice, stay, key);
	stay_leave();
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

static bool set_events(jvmtiEventMode mode)
{
	jvmtiError begins, ends;

	begins = (*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_MONITOR_WAIT, NULL);
	ends = (*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_MONITOR_WAITED, NULL);
	return !begins && !ends;
}

static void wait_stop(uint64_t ended_ns)
{
	wait_event_close(&notice, ended_ns);
	set_events(JVMTI_DISABLE);
	parks_close(&other_parks);
}

static int wait_start(const struct duet_agent_event *event, const char **ret_why)
{
	*ret_why = "the JVM refuses to tell of waiting threads";
	if (!jvm.thread_id)
		return -ENOTSUP;
	wait_event_open(&notice, event);
	if (set_events(JVMTI_ENABLE) && !parks_open(&other_parks))
		return 0;
	wait_stop(0);
	return -ENOTSUP;
}

const struct agent_tap tap_wait = {
	.kind = DUET_AGENT_EVENT_WAIT,
	.first_version = 8,
	.needs = {.can_generate_monitor_events = 1},
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "another agent in this JVM has the events of monitors, and only one can",
	.add_callbacks = wait_add_callbacks,
	.start = wait_start,
	.stop = wait_stop,
};
