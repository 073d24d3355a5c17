/* SPDX-License-Identifier: MIT */
/*
 * The file of a report. A process in a container names a file of its container: such a file is created in the process's
 * root directory, with its user's rights and never with ours.
 */
#ifndef RECORDER_REPORT_FILE_H
#define RECORDER_REPORT_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/io.h"
#include "recorder/foreign_file.h"

struct report_file {
	struct foreign_file foreign; /* without a child: `own` is used */
	struct io_output own;
};

/* Appends `path` with %p (pid), %t (local time), %n and %n{MAX} (number), %{VARIABLE} and %% replaced. */
void report_file_name(const char *path, pid_t pid, unsigned int number, struct buf *ret);
/* `path` is absolute. Returns 0, or -errno with why. */
int report_file_open(struct report_file *file, pid_t pid, uint64_t start_ticks, const char *path, struct buf *why);
/* Copies the report and closes the file. Returns 0, or -errno with why. */
int report_file_write(struct report_file *file, int report, struct buf *why);
void report_file_discard(struct report_file *file); /* does nothing after report_file_write() */

#endif
