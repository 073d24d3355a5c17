/* SPDX-License-Identifier: MIT */
/* Processes that this one has forked. */
#pragma once

#include <sys/types.h>

/* Waits until the child has ended, whatever signals arrive. Returns 0 with the status of waitpid(), or -errno. */
int child_await(pid_t child, int *ret_status);
/*
 * Call in a child, with the parent's getpid() from before fork(): it gets this signal when the parent ends, or now if
 * the parent has ended. The kernel forgets this when the child changes its user.
 */
void child_end_with(pid_t parent, int signo);
