/* SPDX-License-Identifier: MIT */
/* HotSpot's performance counters, /tmp/hsperfdata_USER/PID. The JVM writes this file: it is not trusted. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define HSPERFDATA_MAX (1u << 20) /* bytes to read at most; HotSpot's default size is 32 KiB */

/*
 * Copies the value of the string counter `name`, truncated to `size`. Returns 0, -ENOENT when there is no such counter,
 * or -EBADMSG when the bytes are not hsperfdata in this machine's byte order.
 */
int hsperfdata_string(const void *bytes, size_t len, const char *name, char *value, size_t size);
/* The same for a counter that is a number of 64 bits. */
int hsperfdata_number(const void *bytes, size_t len, const char *name, uint64_t *ret_number);
/*
 * Appends the hsperfdata file of the JVM with root directory `root` (a descriptor), pid `ns_pid` inside its namespace,
 * and user `uid`. A file that another user owns is ignored. Returns 0 or -errno: -ENOENT when there is none, as with
 * -XX:-UsePerfData.
 */
int hsperfdata_read(int root, pid_t ns_pid, uid_t uid, struct buf *ret_bytes);
