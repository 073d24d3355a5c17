/* SPDX-License-Identifier: MIT */
/* Reads the tables in which libjvm describes its own structures to debuggers: gHotSpotVMStructs and gHotSpotVMTypes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offset of one field in a HotSpot structure. `width` in bytes matters where JDKs disagree about the field's type. */
struct offset {
	bool known;
	uint8_t width;
	uint32_t value;
};

/* A wanted field. One of an object sets *offset, a static one sets *address to where it is; the other is NULL. */
struct vmstructs_row {
	const char *type;
	const char *field;
	struct offset *offset;
	uintptr_t *address;
};

/* Fills in the wanted fields that this JVM has. Returns 0, or -ENOENT when it exports no table. */
int vmstructs_read(const struct vmstructs_row *wanted, size_t count);
/* Returns the type's sizeof; 0: unknown. */
size_t vmstructs_type_bytes(const char *type);
/* Returns the offset of ConstantPool::_saved._version, 32 bits, or 0. It follows _length in JDK 8 to 27. */
uint16_t vmstructs_pool_version(const struct offset *length);

/* The JVM's flags (-XX:+Flag), as they are set. */
void jvmflags_open(void); /* called by jvmstructs_open(): finds the table */
/* Returns the value of a flag of type bool; false when it is not found. */
bool jvmflags_is_set(const char *name);
