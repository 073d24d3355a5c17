/* SPDX-License-Identifier: MIT */
/* Tells what a thread that slept has waited for. */
#ifndef JOIN_STATES_H
#define JOIN_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define STATE_IDLE "[idle]" /* the root of what the thread has waited for all the time */
#define STATE_RUNNABLE "[runnable]" /* it waited for a CPU */

/*
 * Returns how many of the frames, root first, are those of the sleep: what follows the scheduler's own function is the
 * taking of the sample.
 */
size_t state_trim(const struct profile *profile, const uint32_t *frames, size_t count);
/*
 * Returns the name of what a blocked thread waited for: by the flags of its sample (DUET_SAMPLE_*) and by the kernel
 * functions of the stack, whose `count` frames are given root first. "[blocked]" if they do not tell. Static text.
 */
const char *state_of(const struct profile *profile, const uint32_t *frames, size_t count, uint16_t flags);

#endif
