/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by all programs: configuration, maps, counting and emitting. The variables and maps are defined in core.bpf.c.
 */
#pragma once

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "duet_config.h"
#include "duet_counters.h"
#include "duet_jvm.h"
#include "duet_record.h"

/* Read-only after loading: the verifier knows the values and removes the branches that they disable. */
extern const volatile struct duet_config duet_config;

/* One tick in so many becomes a sample, per CPU, beyond the event's own gap. The loader changes it at run time. */
extern volatile uint32_t duet_every;

/* When the recording began, CLOCK_MONOTONIC. The loader sets it before the first sleep is seen. */
extern volatile uint64_t duet_started_ns;

/*
 * For the programs that the loader runs itself, see event_offcpu_edge.bpf.c. duet_edge_ns is the edge up to which
 * sleeps are reported, duet_last_edge_ns the one before, CLOCK_MONOTONIC. duet_look_leaders: look at one thread of each
 * process only; the loader may not walk it.
 */
extern volatile uint64_t duet_edge_ns;
extern volatile uint64_t duet_last_edge_ns; /* 0: none yet */
extern volatile bool duet_look_leaders;

/*
 * Set when a thread has slept that takes no sample at the hook in use, because it has not registered rseq(2). Then the
 * loader attaches the program of the next hook.
 */
extern volatile bool duet_needs_fallback_hook;
extern volatile uint32_t duet_fallback_hook; /* enum duet_return of that hook, once it is attached */

/* Ring buffer for records to the loader. The loader sets its size. */
struct duet_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};
extern struct duet_ring_map ring SEC(".maps");

/* Processes that may be signalled. The loader inserts rows; the programs for exec and exit delete them. */
struct duet_jvms_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_JVMS);
	__type(key, u32);
	__type(value, struct duet_jvm_target);
};
extern struct duet_jvms_map jvms SEC(".maps");

/* Processes that publish a context. The loader inserts rows; the programs for exec and exit delete them. */
struct duet_contexts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_JVMS);
	__type(key, u32);
	__type(value, struct duet_context_sources);
};
extern struct duet_contexts_map contexts SEC(".maps");

/* Layout of the Java frames of each JVM. A row is inserted and deleted together with its row in `jvms`. */
struct duet_layouts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_JVMS);
	__type(key, u32);
	__type(value, struct duet_jvm_entry);
};
extern struct duet_layouts_map jvm_layouts SEC(".maps");

/* Processes to sample, with filter_targets. From tgid to the start time in USER_HZ ticks: a tgid can be reused. */
struct duet_targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_TARGETS);
	__type(key, u32);
	__type(value, u64);
};
extern struct duet_targets_map targets SEC(".maps");

/* Recently sampled processes, used when filter_targets is not set. Only these get a record on exec and exit. */
struct duet_seen_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u8);
};
extern struct duet_seen_map seen SEC(".maps");

struct duet_counters_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DUET_BPF_COUNTER_MAX);
	__type(key, u32);
	__type(value, u64);
};
extern struct duet_counters_map counters SEC(".maps");

struct duet_costs_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DUET_MAX_EVENTS);
	__type(key, u32);
	__type(value, struct duet_cost);
};
extern struct duet_costs_map costs SEC(".maps");

struct duet_run_times_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DUET_RUN_TIMES);
	__type(key, u32);
	__type(value, u64);
};
extern struct duet_run_times_map run_times SEC(".maps");

static __always_inline struct duet_cost *duet_cost(u32 event)
{
	return bpf_map_lookup_elem(&costs, &event);
}

/* Returns how to sample the event with this index. The mask is for the verifier. */
static __always_inline const volatile struct duet_event *duet_event(u32 event)
{
	return &duet_config.events[event & (DUET_MAX_EVENTS - 1)];
}

/* Atomic because a program that interrupts this one may count the same. */
static __always_inline void duet_count(enum duet_bpf_counter counter)
{
	u32 key = counter;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
}

/* A wakeup costs an interrupt, so the loader reads by a timer, and is woken when a quarter of the ring is full. */
static __always_inline u64 duet_wakeup_flag(void)
{
	u64 waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	return waiting > bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Writes a record to the ring. `bytes` repeats record->size because the verifier must see its bound. */
static __always_inline void duet_emit(struct duet_record *record, u32 bytes, u64 flag)
{
	if (bpf_ringbuf_output(&ring, record, bytes, flag))
		duet_count(DUET_BPF_RING_FULL);
}

/* /proc/PID/stat counts in USER_HZ, which is 100 on every Linux. */
static __always_inline u64 duet_ticks(u64 ns)
{
	return ns / 10000000;
}
