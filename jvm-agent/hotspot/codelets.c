/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "hotspot/jvmstructs.h"
#include "memory.h"
#include "walk/frame.h"

/* Records where a method entry makes the method's frame. An entry that makes none gets no row. */
static void publish_entry(struct duet_jvm_layout *ret, uintptr_t at, const uint8_t *code, uint32_t bytes)
{
	struct duet_method_entry entry = {.begin = (uint32_t)(at - ret->interpreter_low)};
	int sender = duet_frame_find_entry(code, bytes, &entry.pop, &entry.push);
	unsigned int count = 0;

	ret->entries_low = ret->entries_low ? ret->entries_low : at;
	ret->entries_high = at + bytes;
	while (count < DUET_JVM_ENTRIES && ret->entries[count].end)
		count++;
	if (count == DUET_JVM_ENTRIES || !sender)
		return;
	ret->frame_sender = (uint16_t)sender;
	entry.pop += entry.begin;
	entry.push += entry.begin;
	entry.end = entry.begin + bytes;
	ret->entries[count] = entry;
}

static void publish_thrown(struct duet_jvm_layout *ret, uintptr_t at, const uint8_t *code, uint32_t bytes)
{
	uint32_t low = (uint32_t)(at - ret->interpreter_low);
	struct duet_method_entry thrown;

	if (!duet_frame_find_thrown(code, bytes, &thrown))
		return;
	ret->thrown = (struct duet_method_entry){
		.begin = low + thrown.begin,
		.end = low + thrown.end,
		.pop = low + thrown.pop,
		.push = low + thrown.push,
	};
}

/* Method entries are adjacent codelets. In them the frame pointer may still be the caller's, or its caller's. */
void codelet_publish(struct duet_jvm_layout *ret, const char *name, uintptr_t at, uint32_t bytes)
{
	bool is_entry = strstr(name, "method entry point") != NULL;
	uint8_t *code;

	if (bytes > MEMORY_COPY_MAX || (!is_entry && !strstr(name, "exception handling")))
		return;
	code = malloc(bytes);
	if (code && memory_copy(code, at, bytes) == bytes) {
		if (is_entry)
			publish_entry(ret, at, code, bytes);
		else
			publish_thrown(ret, at, code, bytes);
	}
	free(code);
}
