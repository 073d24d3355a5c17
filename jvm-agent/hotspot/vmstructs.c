/* SPDX-License-Identifier: MIT */
#include "hotspot/vmstructs.h"

#include <errno.h>
#include <string.h>

#include "memory.h"

#define MAX_ENTRIES 20000 /* JDK 25 has 2,000; bounds a table that has no end */

static const struct { const char *type; uint8_t width; } widths[] = {
	{"u2", 2},
	{"int16_t", 2},
	{"size_t", sizeof(size_t)},
};

/* Returns the width of a field: 4 bytes unless the type says otherwise. Users read pointers as such. */
static uint8_t type_width(uintptr_t type_string)
{
	char type[16];

	memory_text(type, type_string, sizeof(type));
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(type, widths[i].type))
			return widths[i].width;
	return 4;
}

/* Returns a variable of libjvm, or 0. They describe the tables: the address, stride and columns' offsets of each. */
static uint64_t exported(const char *name)
{
	uintptr_t variable = memory_symbol(name);

	return variable ? memory_word(variable) : 0;
}

#define TEXT_MAX 64 /* longer than any name that is wanted */

/* Where the columns are in a row. */
struct row_columns {
	uint64_t type, field, type_string, is_static, offset, address;
};

/* Sets what is wanted to what the exported row at `at` says. */
static void fill(const struct vmstructs_row *wanted, const struct row_columns *columns, uintptr_t at)
{
	bool is_static = memory_int(at + columns->is_static) != 0;

	if (wanted->address && is_static)
		*wanted->address = memory_word(at + columns->address);
	else if (wanted->offset && !is_static)
		*wanted->offset = (struct offset){true, type_width(memory_word(at + columns->type_string)),
						  (uint32_t)memory_word(at + columns->offset)};
}

int vmstructs_read(const struct vmstructs_row *wanted, size_t count)
{
	const struct row_columns columns = {
		.type = exported("gHotSpotVMStructEntryTypeNameOffset"),
		.field = exported("gHotSpotVMStructEntryFieldNameOffset"),
		.type_string = exported("gHotSpotVMStructEntryTypeStringOffset"),
		.is_static = exported("gHotSpotVMStructEntryIsStaticOffset"),
		.offset = exported("gHotSpotVMStructEntryOffsetOffset"),
		.address = exported("gHotSpotVMStructEntryAddressOffset"),
	};
	uintptr_t at = exported("gHotSpotVMStructs");
	uint64_t stride = exported("gHotSpotVMStructEntryArrayStride");
	uintptr_t type_at, field_at;
	char type[TEXT_MAX], field[TEXT_MAX];

	if (!at || !stride)
		return -ENOENT;
	for (int n = 0; n < MAX_ENTRIES; n++, at += stride) {
		type_at = memory_word(at + columns.type);
		field_at = memory_word(at + columns.field);
		if (!type_at || !field_at)
			break;
		memory_text(type, type_at, sizeof(type));
		memory_text(field, field_at, sizeof(field));
		for (size_t i = 0; i < count; i++)
			if (!strcmp(type, wanted[i].type) && !strcmp(field, wanted[i].field))
				fill(&wanted[i], &columns, at);
	}
	return 0;
}

size_t vmstructs_type_bytes(const char *type)
{
	uintptr_t at = exported("gHotSpotVMTypes");
	uint64_t stride = exported("gHotSpotVMTypeEntryArrayStride");
	uint64_t name = exported("gHotSpotVMTypeEntryTypeNameOffset");
	uint64_t size = exported("gHotSpotVMTypeEntrySizeOffset");
	char text[TEXT_MAX];

	if (!at || !stride)
		return 0;
	for (int i = 0; i < MAX_ENTRIES && memory_word(at + name); i++, at += stride) {
		memory_text(text, memory_word(at + name), sizeof(text));
		if (!strcmp(text, type))
			return memory_word(at + size);
	}
	return 0;
}

uint16_t vmstructs_pool_version(const struct offset *length)
{
	size_t at = length->value + sizeof(uint32_t);

	return length->known && at + sizeof(uint32_t) <= vmstructs_type_bytes("ConstantPool") ? (uint16_t)at : 0;
}

#define MAX_FLAGS 20000 /* JDK 25 has 2,000; a bound for a table that has no end */
#define FLAG_TEXT_BYTES 64

static struct {
	uintptr_t table_address, count_address; /* JVMFlag *, size_t */
	struct offset name, value_address;
	size_t flag_bytes;
} flags;

/* The type has another name in JDK 8 and 9. */
static const struct vmstructs_row flag_rows[] = {
	{"Flag", "flags", NULL, &flags.table_address},
	{"JVMFlag", "flags", NULL, &flags.table_address},
	{"Flag", "numFlags", NULL, &flags.count_address},
	{"JVMFlag", "numFlags", NULL, &flags.count_address},
	{"Flag", "_name", &flags.name, NULL},
	{"JVMFlag", "_name", &flags.name, NULL},
	{"Flag", "_addr", &flags.value_address, NULL},
	{"JVMFlag", "_addr", &flags.value_address, NULL},
};

void jvmflags_open(void)
{
	memset(&flags, 0, sizeof(flags));
	if (vmstructs_read(flag_rows, sizeof(flag_rows) / sizeof(flag_rows[0])))
		return;
	flags.flag_bytes = vmstructs_type_bytes("JVMFlag");
	if (!flags.flag_bytes)
		flags.flag_bytes = vmstructs_type_bytes("Flag");
}

bool jvmflags_is_set(const char *name)
{
	uintptr_t flag;
	size_t count;

	if (!flags.table_address || !flags.count_address || !flags.flag_bytes || !flags.name.known ||
	    !flags.value_address.known)
		return false;
	flag = memory_word(flags.table_address);
	count = memory_word(flags.count_address);
	for (size_t i = 0; flag && i < count && i < MAX_FLAGS; i++, flag += flags.flag_bytes) {
		char text[FLAG_TEXT_BYTES];

		memory_text(text, memory_word(flag + flags.name.value), sizeof(text));
		if (!strcmp(text, name))
			return memory_byte(memory_word(flag + flags.value_address.value));
	}
	return false;
}
