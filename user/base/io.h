/* SPDX-License-Identifier: MIT */
/* Files: whole reads with a bound, and output that appears complete or not at all. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"

/* Appends at most `max` bytes of the file to `buf`. 0 or -errno; -EFBIG when there was more. dirfd may be AT_FDCWD. */
int io_read_file(int dirfd, const char *path, size_t max, struct buf *buf);
int io_write_all(int fd, const void *bytes, size_t len); /* 0 or -errno */

/*
 * Output through a temporary file beside the target, renamed on success. The
 * temporary file is created at io_output_open(), so that an unwritable place is
 * known before any work is done. Path "-" is stdout; stdout, pipes and devices
 * are written directly. `file` has no descriptor that fileno() could tell.
 */
struct io_sink;
struct io_output {
	FILE *file;
	struct io_sink *sink;
	char *path;	 /* symbolic links followed */
	char *temporary; /* NULL when written directly */
};

int io_output_open(struct io_output *out, const char *path); /* 0 or -errno */
/* The same for a file of our own making: what stands there is replaced, also a link or a pipe, and not followed. */
int io_output_create(struct io_output *out, const char *path);
/* Flush, sync, rename, release. 0, or -errno (-ENOSPC and the like) and the old file is left alone. */
/* The first error of writing so far, -ENOSPC for instance, or 0: stdio itself forgets which it was. */
int io_output_error(const struct io_output *out);
int io_output_commit(struct io_output *out);
/* Removes the temporary file, release. NULL or committed: nothing. */
void io_output_discard(struct io_output *out);

#endif
