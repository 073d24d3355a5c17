/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "hotspot/jvmstructs.h"
#include "hotspot/vmstructs.h"
#include "memory.h"

#define MAX_FLAGS 20000 /* JDK 25 has 2,000; a bound for a table that has no end */
#define FLAG_TEXT_BYTES 64

static struct {
	uintptr_t table_address, count_address; /* JVMFlag *, size_t */
	struct offset name, value_address;
	size_t flag_bytes;
} flags;

/* The type has another name in JDK 8 and 9. */
static const struct vmstructs_row rows[] = {
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
	if (vmstructs_read(rows, sizeof(rows) / sizeof(rows[0])))
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
