/* SPDX-License-Identifier: MIT */
/*
 * The recorder of a process. It holds the state that all commands for that process share (idle or recording), and the
 * last recording. `asprof start` starts it, and it runs on. It ends some time after the process, or when for ten
 * minutes there was no recording and no command, unless the process would have to collect it.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

extern uint64_t recorder_idle_ns; /* the ten minutes; tests shorten it */

/*
 * Starts the recorder of that process, detached from this one. Returns when it accepts commands: 0, also if there is
 * one already, or -errno with one sentence in `why`.
 */
int recorder_start(pid_t pid, uint64_t start_ticks, struct buf *why);

/*
 * The same for a library, which started this process with one end of a socket pair. Returns the exit code when the
 * recorder ends, or when the process has a recorder, which has taken over the socket.
 */
int recorder_run_for(int socket);
