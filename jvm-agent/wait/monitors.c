/* SPDX-License-Identifier: MIT */
#include "wait/monitors.h"

#include <errno.h>

#include "hotspot/jvmstructs.h"
#include "hotspot/vmstructs.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "memory.h"
#include "tap.h"
#include "wait/waiting.h"

#define VIRTUAL_WAITS_VERSION 24 /* virtual threads wait for monitors without their carrier (JEP 491) */

/* Since JDK 24 HotSpot has a number for the JavaThread. Whoever gets a monitor was woken for it: nobody asks. */
#define LAST_VERSION 23

static struct offset thread_monitor, owner;

static const struct vmstructs_row rows[] = {
	{"JavaThread", "_current_pending_monitor", &thread_monitor, NULL},
	{"Thread", "_current_pending_monitor", &thread_monitor, NULL},
	{"ObjectMonitor", "_owner", &owner, NULL},
};

/*
 * Returns the tid of the owner; 0: not known. Called by a thread in MonitorContendedEnter, for the monitor of that. The
 * monitor stays as long as a thread waits for it, but its owner may end. The owner is a JavaThread or, as long as a
 * thread has the monitor that had it when it was a lock word, a place on that thread's stack.
 */
static uint32_t monitor_owner(void)
{
	uintptr_t thread = jvm_current_thread(), monitor, java_thread, vtable;

	if (!thread || !thread_monitor.known || !owner.known)
		return 0;
	monitor = *(const uintptr_t *)(thread + thread_monitor.value);
	if (!monitor)
		return 0;
	java_thread = __atomic_load_n((const uintptr_t *)(monitor + owner.value), __ATOMIC_RELAXED);
	if (memory_copy(&vtable, java_thread, sizeof(vtable)) != sizeof(vtable) || vtable != jvm.thread_vtable)
		return 0;
	return (uint32_t)jvmstructs_thread_id(java_thread);
}

static bool set_events(const struct monitor_waits *waits, jvmtiEventMode mode)
{
	bool begin = jvm_set_event(mode, waits->begin), end = jvm_set_event(mode, waits->end);

	return begin && end;
}

int monitors_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	const struct monitor_waits *waits = tap->own;

	*ret_why = waits->refused;
	if (!jvm.thread_id)
		return -ENOTSUP;
	if (jvm.version <= LAST_VERSION && !owner.known)
		(void)vmstructs_read(rows, sizeof(rows) / sizeof(rows[0]));
	wait_event_open(waits->parks->event, event);
	if (set_events(waits, JVMTI_ENABLE) && !parks_open(waits->parks))
		return 0;
	monitors_stop(tap, 0);
	return -ENOTSUP;
}

void monitors_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	const struct monitor_waits *waits = tap->own;

	wait_event_close(waits->parks->event, ended_ns);
	set_events(waits, JVMTI_DISABLE);
	parks_close(waits->parks);
}

static uint64_t key_of(const struct wait_event *event, const struct stay *stay, JNIEnv *env, jthread thread)
{
	if (!stay || !tap_event_is_open(&event->tap))
		return 0;
	jvm_expect_references(env);
	return wait_key(env, thread);
}

void monitors_begin_wait(struct wait_event *event, JNIEnv *env, jthread thread, jobject object)
{
	STAY(stay);
	uint64_t key = key_of(event, stay, env, thread);
	struct wait_reason reason;
	char *class_name;

	if (key) {
		class_name = wait_class(env, object);
		reason = (struct wait_reason){.class_name = class_name,
					      .address = wait_address(object),
					      .lock = wait_lock(event, object),
					      .is_virtual = wait_is_virtual(env, thread)};
		reason.owner = reason.lock ? monitor_owner() : 0;
		reason.blocks_thread = !reason.is_virtual || jvm.version < VIRTUAL_WAITS_VERSION;
		wait_begins(event, stay, key, &reason);
		jvm_deallocate(class_name);
	}
}

void monitors_end_wait(struct wait_event *event, JNIEnv *env, jthread thread)
{
	STAY(stay);
	uint64_t key = key_of(event, stay, env, thread);

	if (key)
		wait_ends(event, stay, key);
}
