/* SPDX-License-Identifier: MIT */
/* Opens paths inside another process's root directory, which may be hostile: no path can lead outside of it. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"

/*
 * Opens `path` below the directory `root`. With `follow`, symbolic links are followed and resolve inside root; without,
 * or before Linux 5.6 (no openat2), no link is followed. Returns a descriptor (O_CLOEXEC) or -errno: -ELOOP for a link.
 */
int root_open(int root, const char *path, int flags, bool follow);
/*
 * Opens the entry `name` of the directory `dir`, but not a link or a mount point. Returns a descriptor (O_CLOEXEC) or
 * -errno: -EXDEV for a mount. Before Linux 5.6 a mount of the same file system is not noticed.
 */
int root_open_entry(int dir, const char *name, int flags);
/* True for a file that the kernel makes up when it is read, as those of proc and sysfs. `fd` may be O_PATH. */
bool root_is_made_up(int fd);
/*
 * True for a regular file with contents that the kernel does not make up: reading one of those may take messages from
 * others (/proc/kmsg) or reach a device. `fd` may be O_PATH.
 */
bool root_is_stored(int fd, const struct stat *st);
/*
 * Appends at most `max` bytes of a stored file that belongs to `owner`, (uid_t)-1 for any. Returns 0 or -errno. Opens
 * nothing else, and never blocks on a FIFO or a device.
 */
int root_read(int root, const char *path, uid_t owner, size_t max, struct buf *ret_text);
