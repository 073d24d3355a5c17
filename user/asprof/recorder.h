/* SPDX-License-Identifier: MIT */
/*
 * The recorder of a process: it holds the state that all commands for that process share, idle or recording, and what
 * was recorded last. `asprof start` leaves it behind. It ends a while after the process, or when nothing was recorded
 * or asked for ten minutes.
 */
#ifndef ASPROF_RECORDER_H
#define ASPROF_RECORDER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Starts the recorder of that process, detached from this one. Returns when it takes commands: 0, also when there is
 * one already, or -errno with why.
 */
int recorder_start(pid_t pid, uint64_t start_ticks, struct buf *why);

#endif
