/* SPDX-License-Identifier: MIT */
/* The tables in which libjvm tells debuggers of its own structures: gHotSpotVMStructs and gHotSpotVMTypes. */
#ifndef VMSTRUCTS_H
#define VMSTRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One offset in a HotSpot structure. `width` matters where JDKs disagree about the type. */
struct offset {
	bool known;
	uint8_t width;
	uint32_t value;
};

/* A field of a structure; or of none, when it is static: then `address` is where it is. The other is NULL. */
struct vmstructs_row {
	const char *type;
	const char *field;
	struct offset *offset;
	uintptr_t *address;
};

/* Fills in what this JVM has of what is wanted. 0, or -ENOENT when it exports no table. */
int vmstructs_read(void *libjvm, const struct vmstructs_row *wanted, size_t count);
/* sizeof, 0: unknown. */
size_t vmstructs_type_bytes(void *libjvm, const char *type);

#endif
