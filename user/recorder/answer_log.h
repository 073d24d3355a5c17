/* SPDX-License-Identifier: MIT */
/* The file of log=FILE, which has the lines that the library would print. */
#ifndef RECORDER_ANSWER_LOG_H
#define RECORDER_ANSWER_LOG_H

#include <stdbool.h>

#include "recorder/recorder_socket.h"

/*
 * Appends the answer's lines to the file, which is made if need be, and clears them. `with_report`: the report follows
 * and is closed. If the file cannot be opened, everything stays as it is; if it cannot be written, the lines are lost.
 */
void answer_log_write(const char *path, struct recorder_answer *answer, bool with_report);

#endif
