/* SPDX-License-Identifier: MIT */
/*
 * The file of a report. A process in a container names a file of its container: such a file is created in the process's
 * root directory, with its user's rights and never with ours.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "attach/children.h"
#include "base/buf.h"
#include "base/io.h"

/*
 * A file that a child creates and writes. In the root directory of another process only regular files are opened: a
 * container's root can make devices that the kernel would open for the loader, but not for the container.
 */
struct foreign_file {
	struct user_child child; /* without a child: no file is open */
};

#define FOREIGN_FILE_NONE {.child = USER_CHILD_NONE}

/*
 * Creates or truncates the file; `path` is absolute, as the process sees it. Returns 0 or -errno: -ESRCH when the
 * process has ended, -ETIMEDOUT when its file system does not answer, -EBUSY when too many children for this user did
 * not end.
 */
int foreign_file_create(struct foreign_file *file, pid_t pid, uint64_t start_ticks, const char *path);
/* Writes everything that the descriptor `source` has. Returns 0 or -errno. Call foreign_file_release() afterwards. */
int foreign_file_write(const struct foreign_file *file, int source);
void foreign_file_release(struct foreign_file *file); /* ends the child; does nothing when there is none */

struct report_file {
	struct foreign_file foreign; /* without a child: `own` is used */
	struct io_output own;
	int error; /* of report_file_open() */
};

/* Of report_file_open(). */
#define REPORT_FILE_PRIVATE 1u /* only we may read the file, so one in the process's root is refused */
#define REPORT_FILE_WAITS 2u /* wait for a pipe's reader, or a disk, as long as it takes: nobody waits for us */

#define REPORT_FILE_NOT_PRIVATE                                                                                        \
	"the recording has what processes of all users use, and the file would be the user's of the process: leave "   \
	"out -f, and redirect stdout"

/* Appends `path` with %p (pid), %t (the time as local time), %n and %n{MAX} (number), %{VARIABLE} and %% replaced. */
void report_file_name(const char *path, pid_t pid, unsigned int number, time_t when, struct buf *ret);
/* Appends the path; a name of the process's own descriptors, such as /dev/stdout, does not become one of ours. */
void report_file_path(pid_t pid, const char *path, struct buf *ret);
/* Returns true if files that the process names are found in our own root. */
bool report_file_is_ours(pid_t pid);
/* `path` is absolute, or "-" for stdout. Returns 0, or -errno with why. */
int report_file_open(struct report_file *file, pid_t pid, uint64_t start_ticks, const char *path, unsigned int how,
		     struct buf *why);
/*
 * Makes a file that will be written by parts, or truncates it unless `keeps`. Opens it if it is a regular file in our
 * own root; else *ret is -1. Returns as report_file_open().
 */
int report_file_create(int *ret, pid_t pid, uint64_t start_ticks, const char *path, bool is_private, bool keeps,
		       struct buf *why);
/* Copies the report and closes the file. Returns 0, or -errno with why, also if it could not be opened. */
int report_file_write(struct report_file *file, int report, struct buf *why);
void report_file_discard(struct report_file *file); /* does nothing after report_file_write() */
