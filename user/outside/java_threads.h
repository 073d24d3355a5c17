/* SPDX-License-Identifier: MIT */
/*
 * The names of a JVM's Java threads, as it is read from outside: what Thread.getName() returns, of which the kernel
 * knows 15 bytes at most.
 */
#ifndef OUTSIDE_JAVA_THREADS_H
#define OUTSIDE_JAVA_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "outside/objects.h"

/*
 * Returns false when the name could not be passed on; then it is offered again. `tid` is as the JVM sees it. NULL: the
 * thread has ended. `doubt`: it may be another string, which was put where the name was.
 */
typedef bool (*java_threads_teller)(void *context, uint32_t tid, const char *name, bool doubt);

/* Initialize with {0}. */
struct java_threads {
	uintptr_t list; /* the JVM's list of threads when the last sweep began */
	uint64_t sweep_ns; /* when the next sweep begins */
	uint32_t next; /* of the list: where the sweep goes on; 0: there is none under way */
	struct map told, seen; /* tid -> hash of JavaThread and name; those of the last sweep, and of this one */
	uintptr_t vtable; /* of plain JavaThreads; 0: not known yet */
};

/* `version` is the Java version. Returns false when this JVM does not export what is needed. */
bool java_threads_open(int version);
/*
 * Tells new and changed names, and who has ended. One call reads a limited number of threads; all are read when there
 * are new ones, and else once a second. now_ns is CLOCK_MONOTONIC. Call memory_renew() before.
 */
void java_threads_step(struct java_threads *threads, uint64_t now_ns, java_threads_teller tell, void *context);
void java_threads_release(struct java_threads *threads);

#endif
