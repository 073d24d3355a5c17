/* SPDX-License-Identifier: MIT */
/* Samples whose stack goes on with that of another thread (FRAME_WAKER): JFR has the other thread as a field. */
#ifndef WRITERS_JFR_HOLDER_H
#define WRITERS_JFR_HOLDER_H

#include <stdint.h>

struct profile;
struct profile_sample;

/* Returns the node of the stack that waited. */
uint32_t jfr_waiter(const struct profile *profile, uint32_t node);
/*
 * Returns the row of the thread that held the lock or ended the wait; UINT32_MAX: not known, or it has no row. Of
 * several threads with the name, it is the first one.
 */
uint32_t jfr_holder(const struct profile *profile, const struct profile_sample *sample);

#endif
