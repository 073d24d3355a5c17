/* SPDX-License-Identifier: MIT */
/* async-profiler's answers about the state of a recording: status, metrics, list and version; and their log. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "recorder/arguments.h"
#include "recorder/recorder_socket.h"
#include "recorder/recording.h"

/* Appends the answer. `begun`: arguments with which the recording was started. */
void state_print(struct recording *recording, const struct asprof_arguments *begun, enum asprof_action action,
		 struct buf *text);
struct recording_sums state_sums(struct recording *recording); /* {0} before the first recording */
uint64_t state_seconds(const struct recording *recording); /* since it began; of one that has ended, its length */

/*
 * Appends the answer's lines, which the library would print, to the file of log=FILE, which is made if need be, and
 * clears them. `with_report`: the report follows
 * and is closed. If the file cannot be opened, everything stays as it is; if it cannot be written, the lines are lost.
 */
void answer_log_write(const char *path, struct recorder_answer *answer, bool with_report);
