/* SPDX-License-Identifier: MIT */
/* Finds what a thread waited for during a sleep, and what woke it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define STATE_IDLE "[idle]" /* root of the stack of a thread that has waited all the time */
#define STATE_RUNNABLE "[runnable]" /* the thread waited for a CPU */

/* Returns how many of the frames, root first, are the sleep's: those after the scheduler's are the sampling's. */
size_t state_trim(const struct profile *profile, const uint32_t *frames, size_t count);
/*
 * Returns the name of what a blocked thread waited for. It depends on the flags of its sample (DUET_SAMPLE_*) and on
 * the kernel functions of the stack, whose `count` frames are given root first. "[blocked]" if these do not show it.
 * Static text.
 */
const char *state_of(const struct profile *profile, const uint32_t *frames, size_t count, uint16_t flags);

/*
 * Returns true if the thread with this stack waits for work, not within its work: in a pool, an event loop or a server,
 * or as one of the JVM's own. `frames` has no frame for the state: `state` is the result of state_of().
 */
bool idle_in_pool(const struct profile *profile, const uint32_t *frames, size_t count, const char *state);

enum interrupt { INTERRUPT_NONE, INTERRUPT_OTHER, INTERRUPT_TIMER, INTERRUPT_SOFT, INTERRUPT_DEVICE };

/*
 * `frames` is the stack of the waker of a thread, leaf first. state_skip_waking() returns the number of frames at the
 * leaf that wake the thread or trace that. state_interrupt() returns the kind of the interrupt that woke the thread, or
 * INTERRUPT_NONE, and cuts off the frames of the thread that was interrupted.
 */
size_t state_skip_waking(const struct profile *profile, const uint32_t *frames, size_t count);
enum interrupt state_interrupt(const struct profile *profile, const uint32_t *frames, size_t *count);
