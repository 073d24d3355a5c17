/* SPDX-License-Identifier: MIT */
/* Asks the kernel for a process's executable mappings only: a process with 1,000 threads has 2,000 others. */
#ifndef PROC_MAPS_QUERY_H
#define PROC_MAPS_QUERY_H

#include <stddef.h>

#include "base/buf.h"

/*
 * Appends lines as in /proc/PID/maps, at most `max` bytes. `maps_fd` is that file, open. The page [vsyscall] is not
 * among them: no code runs there. Returns 0 or -errno: -ENOTTY before Linux 6.11.
 */
int maps_query_executable(int maps_fd, size_t max, struct buf *text);

#endif
