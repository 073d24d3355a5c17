/* SPDX-License-Identifier: MIT */
/*
 * The HotSpot flags that a JVM's options set: switches and numbers. String flags are left out, as gProfiler does: they
 * hold paths and commands, which may contain secrets.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/vec.h"

#define VM_FLAG_NAME_MAX 63 /* bytes; HotSpot's longest has 45 */
#define VM_FLAGS_MAX 256

struct vm_flag {
	char name[VM_FLAG_NAME_MAX + 1];
	char value[32]; /* "true", "false", or a number; sizes are in bytes, without a unit */
};

struct vm_flags {
	struct vec(struct vm_flag) list; /* sorted by name */
};

/* Adds the flags in `options`, divided by `separator`; the last one for a flag counts. 0 or -ENOMEM. */
int vm_flags_add(struct vm_flags *flags, const char *options, size_t len, char separator);
/* Appends "Name=value\n" for each flag, sorted by name, or a lone "\n" when there is none. */
void vm_flags_print(const struct vm_flags *flags, struct buf *out);
void vm_flags_release(struct vm_flags *flags);
