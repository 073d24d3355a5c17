/* SPDX-License-Identifier: MIT */
/* The JVM's report of pauses in which the garbage collector works. */
#ifndef EVENT_COLLECTIONS_H
#define EVENT_COLLECTIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes the JVM report them, until the last user has closed them. Both are called on the agent's thread; the tap needs
 * the capability can_generate_garbage_collection_events. Returns false if the JVM refuses.
 */
bool collections_open(void);
void collections_close(void);
uint32_t collections_count(void); /* pauses so far; it may wrap. Callable on all threads */

#endif
