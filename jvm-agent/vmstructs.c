/* SPDX-License-Identifier: MIT */
#include "vmstructs.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "libc_versions.h"

#define MAX_ENTRIES 20000 /* JDK 25 has 2,000; bounds a table that has no end */

static const struct { const char *type; uint8_t width; } widths[] = {
	{"u2", 2},
	{"int16_t", 2},
	{"size_t", sizeof(size_t)},
};

/*
 * Returns the width of a field: four bytes unless the type's name says otherwise. Pointers are read as such by their
 * users.
 */
static uint8_t type_width(const char *type)
{
	for (size_t i = 0; type && i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(type, widths[i].type))
			return widths[i].width;
	return 4;
}

/*
 * Returns a variable of libjvm; 0 when there is none. Such variables describe each table: its address, its stride, and
 * the offset of each column.
 */
static uint64_t exported(void *libjvm, const char *name)
{
	const uint64_t *variable = dlsym(libjvm, name);

	return variable ? *variable : 0;
}

static const char *text_at(uintptr_t address)
{
	return *(const char *const *)address;
}

struct exported_row {
	const char *type, *field, *type_string;
	bool is_static;
	uint64_t offset;
	uintptr_t address;
};

static void fill(const struct exported_row *entry, const struct vmstructs_row *row)
{
	if (strcmp(entry->type, row->type) || strcmp(entry->field, row->field))
		return;
	if (row->address && entry->is_static)
		*row->address = entry->address;
	else if (row->offset && !entry->is_static)
		*row->offset = (struct offset){true, type_width(entry->type_string), (uint32_t)entry->offset};
}

int vmstructs_read(void *libjvm, const struct vmstructs_row *wanted, size_t count)
{
	uintptr_t at = exported(libjvm, "gHotSpotVMStructs");
	uint64_t stride = exported(libjvm, "gHotSpotVMStructEntryArrayStride");
	uint64_t type = exported(libjvm, "gHotSpotVMStructEntryTypeNameOffset");
	uint64_t field = exported(libjvm, "gHotSpotVMStructEntryFieldNameOffset");
	uint64_t type_string = exported(libjvm, "gHotSpotVMStructEntryTypeStringOffset");
	uint64_t is_static = exported(libjvm, "gHotSpotVMStructEntryIsStaticOffset");
	uint64_t offset = exported(libjvm, "gHotSpotVMStructEntryOffsetOffset");
	uint64_t address = exported(libjvm, "gHotSpotVMStructEntryAddressOffset");

	if (!at || !stride)
		return -ENOENT;
	for (int n = 0; n < MAX_ENTRIES && text_at(at + type) && text_at(at + field); n++, at += stride) {
		struct exported_row entry = {text_at(at + type),		text_at(at + field),
				      text_at(at + type_string),	*(const int32_t *)(at + is_static) != 0,
				      *(const uint64_t *)(at + offset), *(const uintptr_t *)(at + address)};

		for (size_t i = 0; i < count; i++)
			fill(&entry, &wanted[i]);
	}
	return 0;
}

size_t vmstructs_type_bytes(void *libjvm, const char *type)
{
	uintptr_t at = exported(libjvm, "gHotSpotVMTypes");
	uint64_t stride = exported(libjvm, "gHotSpotVMTypeEntryArrayStride");
	uint64_t name = exported(libjvm, "gHotSpotVMTypeEntryTypeNameOffset");
	uint64_t size = exported(libjvm, "gHotSpotVMTypeEntrySizeOffset");

	if (!at || !stride)
		return 0;
	for (int i = 0; i < MAX_ENTRIES && text_at(at + name); i++, at += stride)
		if (!strcmp(text_at(at + name), type))
			return *(const uint64_t *)(at + size);
	return 0;
}
