/* SPDX-License-Identifier: MIT */
/*
 * A file in the root directory of another process, created and written by a child. Only regular files are opened: a
 * container's root can make devices that the kernel would open for the loader, but not for the container.
 */
#ifndef RECORDER_FOREIGN_FILE_H
#define RECORDER_FOREIGN_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "attach/user_child.h"

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

#endif
