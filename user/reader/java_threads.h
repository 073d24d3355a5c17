/* SPDX-License-Identifier: MIT */
/* Thread.getName() of the threads of a JVM that is read from outside. The kernel has at most 15 bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "reader/objects.h"

/*
 * Called with a thread's name; NULL: the thread has ended. Returns false when the name could not be passed on; then it
 * is offered again. `tid` is as the JVM sees it. `doubt`: the name may be another string that is now at the name's
 * address.
 */
typedef bool (*java_threads_report)(void *context, uint32_t tid, const char *name, bool doubt);

/* Initialize with {0}. */
struct java_threads {
	uintptr_t list; /* the JVM's list of threads when the last sweep began */
	uint64_t sweep_ns; /* time at which the next sweep begins */
	uint32_t next; /* index in the list at which the sweep continues; 0: no sweep is under way */
	struct map reported, seen; /* tid -> hash of JavaThread and name: of the last sweep, and of this one */
	uintptr_t vtable; /* vtable of plain JavaThreads; 0: not known yet */
};

/* `version` is the Java version. Returns false when this JVM does not export what is needed. */
bool java_threads_open(int version);
/*
 * Passes new and changed names, and threads that have ended, to `report`. One call reads a limited number of threads.
 * All threads are read when there are new ones, otherwise once a second. now_ns is CLOCK_MONOTONIC. Call memory_renew()
 * before. Returns 0, or what objects_learn() does.
 */
int java_threads_step(struct java_threads *threads, uint64_t now_ns, java_threads_report report, void *context);
void java_threads_release(struct java_threads *threads);
