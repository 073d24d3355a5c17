/* SPDX-License-Identifier: MIT */
/*
 * Collects attach children that do not end at once. Such a child runs as the target's user, who can stop it. It also
 * reads the target's file systems, where a hostile FUSE server can block it so that even SIGKILL does not end it at
 * once. So the loader never waits for a child: one that has not ended is remembered here and collected later.
 *
 * The same holds for processes that the child started (place.h). The loader sees only that some process still
 * holds the other end of the pipe `life`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Waits up to 100 ms for a child that is about to end. Returns true when it was collected, with its CPU time. */
bool children_collect_soon(pid_t child, int *ret_status, uint64_t *ret_cpu_ns);
/*
 * Remembers a child until it has ended; kills it after `kill_ns` (CLOCK_MONOTONIC). `child` is 0 when it was already
 * collected and only what it started may be left. Takes ownership of `life` (O_NONBLOCK). `uid` is the user of the
 * target that the child worked for.
 */
void children_leave(pid_t child, int life, uid_t uid, uint64_t kill_ns);
/* Collects the children that have ended and kills those that are past their time. */
void children_collect(uint64_t now_ns);
/* Returns the number of children left that worked for this user. A child whose descendants are left counts too. */
size_t children_left(uid_t uid);
/* Waits until no child is left. Gives up shortly after the last child was killed. */
void children_wait(void);
