/* SPDX-License-Identifier: MIT */
/* Recognizes threads that wait for work: those of pools, event loops and servers, and the JVM's own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * Returns true if the thread with this stack waits for work, not within its work. `frames` has `count` frames, the root
 * first. It has no frame for the state: `state` is the result of state_of().
 */
bool idle_in_pool(const struct profile *profile, const uint32_t *frames, size_t count, const char *state);
