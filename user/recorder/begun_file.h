/* SPDX-License-Identifier: MIT */
/*
 * Files of a process's recording: that of the start command, and those that other commands name. A JFR file exists from
 * the start on and grows by chunks, as async-profiler's does. All others are written at an end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "recorder/profiling.h"
#include "recorder/report_file.h"

/* A relative path is relative to the process's working directory, which may not be ours. */
void begun_path(const struct profiling *profiling, const char *path, struct buf *ret);
/* Opens a file of a report, whose name may have placeholders. Returns 0, or -errno with why. */
int begun_open(const struct profiling *profiling, const char *name, struct report_file *ret, struct buf *why);
/* Writes the report that `how` describes. Returns 0, or -errno with one sentence in `why`. */
int begun_report(struct profiling *profiling, const struct asprof_arguments *how, struct report_file *file,
		 struct buf *why);

bool begun_has_file(const struct profiling *profiling);
bool begun_is_jfr(const struct profiling *profiling); /* and has a file */
/* Returns true if a report with these arguments is what the JFR file gets. */
bool begun_takes(const struct profiling *profiling, const struct asprof_arguments *arguments);
/*
 * Call when a recording or a window has begun: makes the file if it is JFR. `keeps`: what the file has stays. Returns
 * 0, or -errno with why.
 */
int begun_create(struct profiling *profiling, bool keeps, struct buf *why);
/*
 * Writes what was recorded until then (CLOCK_REALTIME; 0: all), and the file does not have yet. Returns 0, or -errno
 * with one sentence in `why`.
 */
int begun_write(struct profiling *profiling, uint64_t until_ns, struct buf *why);
/* The same at an end that no command waits for. A line about a failure is appended to `log`. */
void begun_write_unasked(struct profiling *profiling, uint64_t until_ns, struct buf *log);
void begun_step(struct profiling *profiling); /* call some times a second: begins a chunk that is due */
