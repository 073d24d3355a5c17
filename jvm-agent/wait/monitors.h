/* SPDX-License-Identifier: MIT */
/* Events whose samples are waits at monitors of objects, which JVMTI reports, and parks of the same kind (parks.h). */
#ifndef WAIT_MONITORS_H
#define WAIT_MONITORS_H

#include <jvmti.h>
#include <stdint.h>

struct duet_agent_event;
struct park_listener;
struct wait_event;

struct monitor_waits {
	const struct park_listener *parks; /* its event has the waits at monitors, too */
	jvmtiEvent begin, end; /* by which JVMTI reports them */
};

/* Called on the agent's thread, as a tap's start() and stop(). monitors_start() returns 0 or -ENOTSUP. */
int monitors_start(const struct monitor_waits *waits, const struct duet_agent_event *event);
void monitors_stop(const struct monitor_waits *waits, uint64_t ended_ns);

/* Called by the callbacks of `begin` and `end`, on the thread that waits. Do nothing while the event is closed. */
void monitors_begin_wait(struct wait_event *event, JNIEnv *env, jthread thread, jobject object);
void monitors_end_wait(struct wait_event *event, JNIEnv *env, jthread thread);

#endif
