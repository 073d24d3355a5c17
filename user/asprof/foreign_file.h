/* SPDX-License-Identifier: MIT */
/*
 * A file in the root directory of another process. A child with that process's user and no capability creates and
 * writes it: its folder may be a mount of that user, and its file system a server of that user. The user can stop or
 * block the child, so each wait has a deadline. Only regular files are opened: a container's root can make devices that
 * the kernel would open for the loader, but not for the container.
 */
#ifndef ASPROF_FOREIGN_FILE_H
#define ASPROF_FOREIGN_FILE_H

#include <stdint.h>
#include <sys/types.h>

struct foreign_file {
	pid_t child; /* 0: none */
	int socket; /* to the child */
	uid_t uid; /* user of the process */
};

#define FOREIGN_FILE_NONE {.socket = -1}

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
