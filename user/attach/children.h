/* SPDX-License-Identifier: MIT */
/*
 * The end of children that attach. Such a child runs as the target's user, who may stop it, and looks into the target's
 * file systems, where a hostile FUSE server can hold it so that not even SIGKILL ends it at once. So the loader never
 * waits for one: whoever has not ended is remembered here and collected later. So is what the child started (stage.h),
 * of which the loader only sees that somebody still holds the other end of `life`, a pipe.
 */
#ifndef ATTACH_CHILDREN_H
#define ATTACH_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Waits for a child that is about to end, for some ms at most. True when it was collected; then has its CPU time. */
bool children_collect_soon(pid_t child, int *ret_status, uint64_t *ret_cpu_ns);
/*
 * Has until `kill_ns` (CLOCK_MONOTONIC) to end, then it is killed; 0: it was collected. Takes over `life`, O_NONBLOCK.
 * `uid`: of the target it worked for.
 */
void children_leave(pid_t child, int life, uid_t uid, uint64_t kill_ns);
/* Collects those that have ended. */
void children_collect(uint64_t now_ns);
/* How many that worked for this user, or what they started, are left. */
size_t children_left(uid_t uid);
/* Until none is left, or those that are were killed and have had a moment. */
void children_wait(void);

#endif
