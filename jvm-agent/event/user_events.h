/* SPDX-License-Identifier: MIT */
/* Events that the program reports itself go into the recording, if there is one that wants them. */
#ifndef EVENT_USER_EVENTS_H
#define EVENT_USER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

/* All are callable on all threads, but not in a signal handler. */

/* Returns the number of the type of this name, valid as long as the process runs; -1: no room, or a wrong name. */
int user_events_type(const char *name);
/*
 * Adds an event of the calling thread. Returns false if there is no such type, or if the data is longer than
 * DUET_MAX_USER_DATA.
 */
bool user_events_add(int type, const void *data, size_t bytes);

#endif
