/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the context of the current thread, which its program publishes. */
#pragma once

#include "compat.bpf.h"

static __always_inline int context_read(void *to, u32 bytes, u64 from)
{
	return (int)bpf_probe_read_user(to, bytes, (const void *)from);
}

#include "walk/context.h"

/* Sets the sample's context; user memory must be readable. Not inline: the walk and its callers need the BPF stack. */
static __noinline int context_of(struct duet_sample *sample)
{
	u32 tgid = sample ? sample->head.tgid : 0;
	struct duet_context_sources *sources = tgid ? bpf_map_lookup_elem(&contexts, &tgid) : NULL;

	if (sources && sources->start_ticks == duet_ticks(sample->start_ns))
		context_find(sources, task_thread_pointer((struct task_struct *)bpf_get_current_task()),
			     &sample->context);
	return 0;
}
