/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the context of the current thread, which its program publishes. */
#pragma once

#include "compat.bpf.h"
#include "unwind.bpf.h"

static __always_inline int context_read(void *to, u32 bytes, u64 from)
{
	return (int)bpf_probe_read_user(to, bytes, (const void *)from);
}

#include "walk/context.h"

/*
 * Sets the sample's context, and where its attributes are; user memory must be readable. Not inline: the walk and its
 * callers need the BPF stack.
 */
static __noinline int context_of(struct duet_scratch *room)
{
	u32 tgid = room->sample.head.tgid;
	struct duet_context_sources *sources = bpf_map_lookup_elem(&contexts, &tgid);
	struct duet_context_record record;
	u64 at;

	room->context_bytes = 0;
	if (!sources || sources->start_ticks != duet_ticks(room->sample.start_ns))
		return 0;
	at = context_find(sources, task_thread_pointer((struct task_struct *)bpf_get_current_task()), &record);
	if (!at)
		return 0;
	room->sample.context = record.context;
	room->context_at = at + sizeof(record);
	room->context_bytes = record.attribute_bytes;
	return 0;
}

/*
 * Appends the attributes of the context to the sample, which has this size, before its thread runs on. Returns the new
 * size. Not inline, as above.
 */
static __noinline u32 context_append(struct duet_scratch *room, u32 bytes)
{
	u32 count = room->context_bytes, size;
	struct duet_attribute *to;

	if (count > DUET_CONTEXT_ATTRIBUTES)
		count = DUET_CONTEXT_ATTRIBUTES;
	/* For the verifier. The asm hides the value, else the compiler would remove the check, or move it. */
	__asm__("" : "+r"(count), "+r"(bytes));
	if (bytes > sizeof(room->room) - CONTEXT_ROOM || !count || count > DUET_CONTEXT_ATTRIBUTES)
		return bytes;
	size = (count + 7) & ~7u;
	*(u64 *)(room->room + bytes + size) = 0; /* what pads the value, which begins 8 bytes after the attribute */
	if (bpf_probe_read_user(room->room + bytes + sizeof(*to), count, (const void *)room->context_at)) {
		duet_count(DUET_BPF_CONTEXT_UNREAD);
		return bytes;
	}
	to = (void *)(room->room + bytes);
	*to = (struct duet_attribute){.type = DUET_ATTRIBUTE_CONTEXT, .bytes = count};
	size += sizeof(*to);
	room->sample.attribute_bytes += size;
	return bytes + size;
}
