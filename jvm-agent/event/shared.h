/* SPDX-License-Identifier: MIT */
/* What files of other events, JVMTI's callbacks and the C interface call of the events here. */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- gc.c: the JVM's report of pauses in which the garbage collector works ---- */

/*
 * Makes the JVM report them, until the last user has closed them. Both are called on the agent's thread; the tap needs
 * the capability can_generate_garbage_collection_events. Returns false if the JVM refuses.
 */
bool collections_open(void);
void collections_close(void);
uint32_t collections_count(void); /* pauses so far; it may wrap. Callable on all threads */

/* Called on a thread of the JVM when it has compiled this method. */
void compilations_on_load(jmethodID method);

/* ---- user.c: events of the program's own. Callable on all threads, but not in a signal handler ---- */

/* Returns the number of the type of this name, valid as long as the process runs; -1: no room, or a wrong name. */
int user_events_type(const char *name);
/* Adds an event of the calling thread. Returns false for a wrong type, or data longer than DUET_MAX_USER_DATA. */
bool user_events_add(int type, const void *data, size_t bytes);

/*
 * ---- outside_objects.c: objects that do not fit into their thread's buffer (TLAB) and are allocated outside ----
 *
 * JDK 12 to 24 count bytes of the buffer twice when that happens: the next object in the buffer is sampled too early,
 * by up to an interval, and objects outside too seldom. So the JVM samples closely, and the agent leaves out samples.
 */

struct stay;

void outside_objects_begin(void); /* forgets all objects */
/* Counts an object that the calling thread has allocated and the JVM has sampled at this interval. */
void outside_objects_count(struct stay *stay, jobject object, uint64_t size, uint64_t interval);
/* Returns the interval at which the JVM should sample, which is not longer than the present one. */
uint64_t outside_objects_interval(uint64_t interval);
