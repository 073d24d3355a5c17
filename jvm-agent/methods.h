/* SPDX-License-Identifier: MIT */
/*
 * Names of the methods that samples and compiled code mention.
 *
 * jmethodIDs die with their class, and nothing can be looked up in a signal
 * handler. So whoever meets a jmethodID, handler or callback, only marks it as seen:
 * an insertion into a fixed table. The first time it also enters a queue and wakes
 * the agent's thread, which asks JVMTI and publishes one DUET_AGENT_METHOD
 * record. That is milliseconds after the first sample, not at the end of
 * the recording; and only methods that matter are named, not the tens of
 * thousands that are loaded.
 */
#ifndef METHODS_H
#define METHODS_H

#include <jvmti.h>
#include <stdint.h>

struct session;

struct methods {
	uint64_t *seen; /* open addressing by hash, 0 = free */
	uint64_t *queue; /* ids in order of insertion; as long as the table, so it cannot overflow */
	uint32_t queued; /* next free place of the queue */
	uint32_t published; /* the agent's thread only */
	uint32_t asleep; /* the agent's thread waits for wake_fd */
	int wake_fd; /* eventfd, readable when there is something to publish */
};

/* 0 or -errno. */
int methods_init(struct methods *methods);
void methods_release(struct methods *methods);

/* Async-signal-safe. Zero ids are ignored. */
void methods_see(struct session *session, uint64_t method);
/* Publishes what was seen since the last call. Agent's thread only. */
void methods_publish(struct session *session, JNIEnv *env);
/* Before poll() on wake_fd: false when there is something to publish already. */
int methods_may_sleep(struct methods *methods);

#endif
