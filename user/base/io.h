/* SPDX-License-Identifier: MIT */
/* Files: whole reads with a bound, and output that appears complete or not at all. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/out_path.h"

/* Appends at most `max` bytes of the file to `buf`. 0 or -errno; -EFBIG when there was more. dirfd may be AT_FDCWD. */
int io_read_file(int dirfd, const char *path, size_t max, struct buf *buf);
int io_read_again(int fd, size_t max, struct buf *buf); /* the same from the beginning of an open file */
int io_write_all(int fd, const void *bytes, size_t len); /* 0 or -errno */

/*
 * Output through a temporary file beside the target, renamed on success. The
 * temporary file is created at io_output_open(), so that an unwritable place is
 * known before any work is done. Path "-" is stdout; stdout, pipes and devices
 * are written directly. `file` has no descriptor that fileno() could tell.
 */
struct io_sink;
/* Who may read a new file. NULL instead: as the umask says. */
struct io_access {
	bool is_private; /* it tells of others: its owner, and `group` */
	gid_t group; /* IO_NO_GROUP for none */
};
#define IO_NO_GROUP ((gid_t)-1)

struct io_output {
	FILE *file;
	struct io_sink *sink;
	struct out_path at; /* without a name: stdout */
	char *temporary; /* in the same folder; NULL when written directly */
};

/* 0 or -errno: -EACCES also for a link or a pipe that another user may have put there. */
int io_output_open(struct io_output *out, const char *path, const struct io_access *access);
/* The same for a file of our own making: what stands there is replaced, also a link or a pipe, and not followed. */
int io_output_create(struct io_output *out, const char *path, const struct io_access *access);
/* The first error of writing so far, -ENOSPC for instance, or 0: stdio itself forgets which it was. */
int io_output_error(const struct io_output *out);
/* Flush, sync, rename, release. 0, or -errno (-ENOSPC and the like) and the old file is left alone. */
int io_output_commit(struct io_output *out);
/* Removes the temporary file, release. NULL or committed: nothing. */
void io_output_discard(struct io_output *out);

#endif
