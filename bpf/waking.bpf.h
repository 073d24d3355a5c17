/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the programs that a thread or an interrupt runs when it wakes a thread. */
#pragma once

#include "core.bpf.h"
#include "sample.bpf.h"

/*
 * Writes the record, without waking the loader: the sleeper's run queue is about to be locked, and its sample follows.
 */
static __always_inline void waking_end(struct duet_scratch *room)
{
	sample_emit(room, sizeof(room->sample) + stack_bytes(room), BPF_RB_NO_WAKEUP);
}

/* Records what the run of the event's program has cost. Not inline: the walk needs the BPF stack. */
static __noinline void waking_cost(u32 event, u64 began_ns)
{
	sample_cost(&(struct sample_from){.began_ns = began_ns, .event = event}, true);
}

/* Returns false while sampling of the event is paused on this CPU. */
static __always_inline bool waking_may_run(u32 event, u64 now_ns)
{
	const struct duet_cost *cost = duet_cost(event);

	return cost && now_ns >= cost->pause_until_ns;
}
