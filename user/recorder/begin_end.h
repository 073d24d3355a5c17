/* SPDX-License-Identifier: MIT */
/*
 * Recordings between the calls of two functions (begin=, end=, ttsp): the calls are events of the recording, and the
 * report leaves out what lies outside.
 */
#pragma once

#include "profile/profile.h"
#include "recorder/arguments.h"

/* Appends the event for `duet record -e` that is hit when this function of the process is called. */
void begin_end_event(const char *function, struct buf *ret_event);
/*
 * Replaces the events of the marks by an event "window", whose samples are the times between them. Without `windows`,
 * there is none. `begun`: the arguments with which the recording was started. Returns 0 or -errno.
 */
int begin_end_apply(struct profile *profile, const struct asprof_arguments *begun, bool windows);
