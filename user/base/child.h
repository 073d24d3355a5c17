/* SPDX-License-Identifier: MIT */
/* Processes that this one has forked. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Waits until the child has ended, whatever signals arrive. Returns 0 with the status of waitpid(), or -errno. */
int child_await(pid_t child, int *ret_status);
/*
 * The same until a time (CLOCK_MONOTONIC), when the child is killed. Returns -ETIMEDOUT, with a status of failure, if
 * even that has not ended it within a second.
 */
int child_await_until(pid_t child, int *ret_status, uint64_t until_ns);
/*
 * Call in a child, with the parent's getpid() from before fork(): it gets this signal when the parent ends, or now if
 * the parent has ended. The kernel forgets this when the child changes its user.
 */
void child_end_with(pid_t parent, int signo);

/* Closes all descriptors from `first` on but these two, which may be the same. */
void child_keep_only(int first, int a, int b);

/*
 * Lowers the nice value of this thread, and so of all that it creates later: on a busy machine, a loader that gets no
 * CPU loses samples. Does nothing if the value is not 0, or without the right to. Call before there are threads.
 */
void nice_raise(void);
void nice_reset(void); /* sets it to 0 again: for writing files, and for a child that will run another program */

/* Gives up rights for good, in processes that touch a target's files. The loader calls rights_narrow() alone. */
#define RIGHTS_NONE 0
#define RIGHT(capability) (1ull << (capability))

/* Drops all capabilities but these, also for root: root in a container is not trusted as root. Returns 0 or -errno. */
int rights_keep(uint64_t capabilities);
/*
 * The same for those that look at processes, the loader too. Without CAP_SYS_PTRACE all are kept: then the kernel shows
 * a process only to those that have all of its capabilities.
 */
int rights_narrow(uint64_t capabilities);
/* Makes all file access of this process happen as this user and only this group. Returns 0 or -errno. */
int rights_use_files_of(uid_t uid, gid_t gid);
