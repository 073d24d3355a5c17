/* SPDX-License-Identifier: MIT */
/*
 * Threads that park: LockSupport.park(), and the locks, conditions and queues of java.util.concurrent, which use it.
 * Once an event has listened, the native method Unsafe.park() is a function of ours that calls HotSpot's.
 */
#ifndef WAIT_PARKS_H
#define WAIT_PARKS_H

#include <jni.h>
#include <stdbool.h>

struct wait_event;

/* Parks that are waits of one event. */
struct park_listener {
	struct wait_event *event;
	/*
	 * Returns true for a park that the event samples. `class_name` is the signature of the class of
	 * LockSupport.park()'s argument; NULL: it had none. Called on the thread that parks, inside stay_enter().
	 */
	bool (*wants)(const char *class_name);
};

/* In event/lock.c: returns true if a park for an object of this class is a wait for a lock. */
bool lock_parks_for(const char *class_name);

/*
 * Both are called on the agent's thread, which has the capability can_generate_monitor_events. A listener is static,
 * and may be called for a while after parks_close(). parks_open() returns 0, or -ENOTSUP when the JVM has no such
 * method.
 */
int parks_open(const struct park_listener *listener);
void parks_close(const struct park_listener *listener);

#endif
