/* SPDX-License-Identifier: MIT */
/*
 * Gives every thread of the JVM its own source of ticks, and takes it back. For engines that need one for each thread.
 *
 * Java threads get theirs in ThreadStart. All others are found by listing /proc/self/task ten times a second.
 */
#pragma once

#include <stdint.h>

struct stay;

struct tick_source {
	/* Returns a handle > 0, or -errno; -ESRCH when the thread has ended. */
	int (*make)(int tid);
	/* Starts the ticks. Handlers already find the handle. */
	void (*start)(int handle);
	/* Ends the ticks. Handlers of other threads may still use the handle. */
	void (*stop)(int handle);
	/* Frees what handlers use; may be NULL. When it is called, no handler uses the handle any more. */
	void (*free)(int handle);
};

/*
 * Makes a source for every thread there is. `signo` is the signal that the sources send. Returns 0, or -errno when no
 * thread got one. Call ticking_stop() and ticking_release() in both cases, or ticking_start() again after an error.
 */
int ticking_start(const struct tick_source *source, int signo);
/* Looks for threads that are new or have ended. Counts the threads without ticks in the stay's ring. */
void ticking_rescan(struct stay *stay);
void ticking_thread_start(int tid); /* on the thread itself, as is ticking_thread_end() */
void ticking_thread_end(int tid);
void ticking_stop(void); /* ends all ticks */
void ticking_release(void); /* frees all sources, after ticking_stop() and when no handler runs any more */
/* Returns the handle of a thread, or 0 when it has none. Async-signal-safe on that thread. */
int ticking_handle(int tid);

/*
 * Returns when a source that is made now must tick first: after a random part of the first interval. If it came after a
 * whole one, threads that use less were never seen, and others credited too little. The time is random enough.
 */
uint64_t ticking_first(uint64_t interval);
