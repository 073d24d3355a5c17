/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "hotspot/jvmstructs.h"
#include "memory.h"

#define MAGIC 0xc0c0feca /* the bytes ca fe c0 c0, whatever the JVM's byte order */
#define MAX_COUNTERS 4096 /* JDK 25 has some 250 */
#define TYPE_LONG 'J'

/* PerfDataPrologue, version 2.0. */
struct perf_prologue {
	uint32_t magic;
	uint8_t byte_order, major, minor, accessible;
	int32_t used; /* bytes */
	int32_t overflow;
	int64_t changed_at;
	int32_t first; /* offset of the first entry */
	int32_t entries;
};

/* PerfDataEntry. Offsets are from its start. */
struct perf_entry {
	int32_t bytes;
	int32_t name;
	int32_t vector_length; /* 0: one value */
	uint8_t type, flags, units, variability;
	int32_t value;
};

/* Returns where the value is if the entry has this name, else 0. Reads in place: only the JVM writes this memory. */
static uintptr_t value_of(uintptr_t at, const struct perf_entry *entry, const char *name)
{
	char text[64];

	if (entry->name < (int32_t)sizeof(*entry) || entry->name >= entry->bytes || entry->value < 0 ||
	    entry->value > entry->bytes - 8 || entry->type != TYPE_LONG || entry->vector_length)
		return 0;
	memory_text(text, at + (uint32_t)entry->name, sizeof(text));
	if (strcmp(text, name) != 0)
		return 0;
	return at + (uint32_t)entry->value;
}

uintptr_t perf_counter_of_entry(uintptr_t at, const char *name)
{
	struct perf_entry entry;

	return memory_copy(&entry, at, sizeof(entry)) == sizeof(entry) ? value_of(at, &entry, name) : 0;
}

uintptr_t perf_counter(uintptr_t memory, const char *name)
{
	struct perf_prologue head;
	uintptr_t at, end, value = 0;
	struct perf_entry entry;

	if (!memory || memory_copy(&head, memory, sizeof(head)) < sizeof(head) || head.magic != MAGIC ||
	    head.first < (int32_t)sizeof(head) || head.used < head.first)
		return 0;
	at = memory + (uint32_t)head.first;
	end = memory + (uint32_t)head.used;
	for (int i = 0; i < MAX_COUNTERS && i < head.entries && !value && at + sizeof(entry) <= end; i++) {
		if (memory_copy(&entry, at, sizeof(entry)) < sizeof(entry) ||
		    entry.bytes < (int32_t)sizeof(entry) || (uintptr_t)entry.bytes > end - at)
			return 0;
		value = value_of(at, &entry, name);
		at += (uint32_t)entry.bytes;
	}
	return value;
}
