/* SPDX-License-Identifier: MIT */
/* Events whose samples are waits at monitors of objects, which JVMTI reports, and parks of the same kind. */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

struct agent_tap;
struct duet_agent_event;
struct wait_event;

struct monitor_waits {
	const struct park_listener *parks; /* its event has the waits at monitors, too */
	jvmtiEvent begin, end; /* by which JVMTI reports them */
	const char *refused; /* why they cannot be had */
};

/* start() and stop() of a tap whose `own` is the struct monitor_waits. */
int monitors_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why);
void monitors_stop(const struct agent_tap *tap, uint64_t ended_ns);

/* Called by the callbacks of `begin` and `end`, on the thread that waits. Do nothing while the event is closed. */
void monitors_begin_wait(struct wait_event *event, JNIEnv *env, jthread thread, jobject object);
void monitors_end_wait(struct wait_event *event, JNIEnv *env, jthread thread);

/*
 * Threads that park: LockSupport.park(), and the locks, conditions and queues of java.util.concurrent, which use it.
 * Once an event has listened, Unsafe.park() is a function of ours that calls HotSpot's. A listener is for one event.
 */
struct park_listener {
	struct wait_event *event;
	/*
	 * Returns true for a park that the event samples. `class_name` is the signature of the class of
	 * LockSupport.park()'s argument; NULL: it had none. Called on the thread that parks, inside stay_enter().
	 */
	bool (*wants)(const char *class_name);
};

/*
 * Both are called on the agent's thread, which has the capability can_generate_monitor_events. A listener is static,
 * and may be called for a while after parks_close(). parks_open() returns 0, or -ENOTSUP without such a method.
 */
int parks_open(const struct park_listener *listener);
void parks_close(const struct park_listener *listener);
