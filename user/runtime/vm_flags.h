/* SPDX-License-Identifier: MIT */
/*
 * Flags of HotSpot that options set: switches and numbers, as far as the options tell. Strings are left out, as
 * gProfiler does: they are paths, commands and what people hide in them.
 */
#ifndef RUNTIME_VM_FLAGS_H
#define RUNTIME_VM_FLAGS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/vec.h"

#define VM_FLAG_NAME_MAX 63 /* bytes; HotSpot's longest has 45 */
#define VM_FLAGS_MAX 256

struct vm_flag {
	char name[VM_FLAG_NAME_MAX + 1];
	char value[32]; /* "true", "false", a number without "k" and the like */
};

struct vm_flags {
	struct vec(struct vm_flag) list; /* by name */
};

/* Options between separators; others among them are passed over. A later one for the same flag counts. 0 or -ENOMEM. */
int vm_flags_add(struct vm_flags *flags, const char *options, size_t len, char separator);
/* Appends "Name=value\n" for each, by name; a lone "\n" when there is none. */
void vm_flags_print(const struct vm_flags *flags, struct buf *out);
void vm_flags_release(struct vm_flags *flags);

#endif
