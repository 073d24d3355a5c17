/* SPDX-License-Identifier: MIT */
/*
 * Files as another process sees them. Links are followed inside that process's root. Only regular files are opened:
 * opening a device can have effects, and opening a FIFO can block. A regular file can block too, by a lease or by its
 * file system, so a helper process looks it up and opens it, see proc/helper.h. The loader itself reads only files
 * whose reads no user can delay. Of all other files it reads a copy that the helper makes.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "proc/maps.h"
#include "proc/process.h"

#define TARGET_FILE_COPY_MAX (256ll << 20) /* bytes of the largest file that is copied; zeros take no memory */

struct target_file {
	pid_t pid; /* charge->living when it was found */
	int path_fd; /* O_PATH */
	int fd; /* for reading, -1 before target_file_read() */
	struct stat st;
};

/* Finds `path` in the root of process `root`. 0 or -errno; release `file` after a 0. */
int target_file_find(struct target_file *file, const struct charge *charge, pid_t root, const char *path);
/* Finds the mapped file, even if deleted or replaced. 0 (then release it) or -errno: -ESTALE: another has its path. */
int target_file_find_mapping(struct target_file *file, const struct charge *charge, const struct process *process,
			     const struct mapping *mapping);
/*
 * Returns a descriptor for reading, which `file` owns, or -errno: -EAGAIN if another process has a lease on the file,
 * -EFBIG or -ETIME if it must be copied but is too large or takes too long. A copy may lack the bytes before `from`.
 */
int target_file_read(struct target_file *file, const struct charge *charge, off_t from);
void target_file_release(struct target_file *file);
/* A hash that is the same for this file in every process, container and mount namespace. It changes with the file. */
uint64_t target_file_identity(const struct target_file *file);

/* For the task of a parser: the same for files that the same users may change, else 0. */
uint64_t target_file_origin(const struct target_file *file);
/*
 * Returns true if the users who may change `other` may change `file` too: both have one owner and were found on one
 * mount. The owner alone is not enough: root of a container has the number of root outside.
 */
bool target_file_same_origin(const struct target_file *file, const struct target_file *other);
/* After target_file_read(): true if it has a copy, because a user could delay reads of the file. */
bool target_file_is_copy(const struct target_file *file);

/* target_file_find() and target_file_read() in one, for files that are read once. The caller owns the descriptor. */
int target_file_open(const struct charge *charge, pid_t root, const char *path);

/*
 * The image of a "[vdso]" mapping, the library that the kernel maps into each process: it is not a file. The memory of
 * the other process is not read either: a page there may have been replaced, for instance by a page of a FUSE file that
 * never arrives. But a kernel has only one such library for each kind of process, so ours is the same as that of other
 * 64-bit processes. It is static: do not free it. NULL for a 32-bit process, or if the mapping is not as large as ours;
 * then frames are named by their offsets.
 */
void *vdso_of(const struct mapping *mapping, size_t *ret_bytes);
