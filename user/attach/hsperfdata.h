/* SPDX-License-Identifier: MIT */
/* HotSpot's performance counters, /tmp/hsperfdata_USER/PID: what the JVM says about itself, true or not. */
#ifndef ATTACH_HSPERFDATA_H
#define ATTACH_HSPERFDATA_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

#define HSPERFDATA_MAX (1u << 20) /* bytes that are read; HotSpot's default is 32 KiB */

/*
 * Copies the string counter `name`, cut to `size`. 0, -ENOENT when there is none, -EBADMSG when the
 * bytes are no hsperfdata of this machine's byte order.
 */
int hsperfdata_string(const void *bytes, size_t len, const char *name, char *value, size_t size);
/*
 * Appends the file of the JVM that has `root` (a descriptor) as its root directory, numbers itself `ns_pid` there, and
 * runs as `uid`: another user's file is not taken for its. 0, or -errno: -ENOENT with -XX:-UsePerfData.
 */
int hsperfdata_read(int root, pid_t ns_pid, uid_t uid, struct buf *ret_bytes);

#endif
