/* SPDX-License-Identifier: MIT */
/*
 * Files as another process sees them. Its links are followed inside its own root,
 * and nothing but a regular file is ever opened: opening a device can have effects,
 * opening a FIFO can block. So can a regular file, by a lease or by its file system:
 * a helper looks it up and opens it, see proc/helper.h. The loader reads only what
 * nobody can hold back, of all others a copy.
 */
#ifndef SYM_TARGET_FILE_H
#define SYM_TARGET_FILE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "proc/maps.h"
#include "proc/process.h"

#define TARGET_FILE_COPY_MAX (256ll << 20) /* bytes that are copied of one; zeros take no memory */

struct target_file {
	pid_t pid; /* for whom it is read */
	int path_fd; /* O_PATH */
	int fd; /* for reading, -1 before target_file_read() */
	struct stat st;
};

/* `path` in the root of process `root`, on behalf of process `pid`. 0 or -errno; to be released when 0. */
int target_file_find(struct target_file *file, pid_t pid, pid_t root, const char *path);
/* The very file that is mapped, also when it was deleted or replaced; -ESTALE when only another one has its path. */
int target_file_find_mapping(struct target_file *file, const struct process *process, const struct mapping *mapping);
/*
 * A descriptor for reading, which stays the file's, or -errno: -EAGAIN when somebody has a lease on it, -EFBIG, -ETIME
 * when a copy is needed that is too large or takes too long. What stands before `from` need not be in it.
 */
int target_file_read(struct target_file *file, off_t from);
void target_file_release(struct target_file *file);
/* The same file has the same number in every process, container and mount namespace. */
uint64_t target_file_identity(const struct target_file *file);

/* The first and the third in one, for files that are read once. The descriptor is the caller's. */
int target_file_open(pid_t pid, pid_t root, const char *path);

#endif
