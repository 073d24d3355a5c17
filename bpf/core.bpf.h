/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by all programs: configuration, maps, counting and emitting. The variables are defined in core.bpf.c. */
#pragma once

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "duet_config.h"
#include "duet_counters.h"
#include "duet_jvm.h"
#include "duet_record.h"
#include "duet_unwind.h"

/* Read-only after loading: the verifier knows the values and removes the branches that they disable. */
extern const volatile struct duet_config duet_config;

/* One tick in so many becomes a sample, per CPU, beyond the event's own gap. The loader changes it at run time. */
extern volatile uint32_t duet_every;

/* When the recording began, CLOCK_MONOTONIC. The loader sets it before the first sleep is seen. */
extern volatile uint64_t duet_started_ns;

/*
 * For the programs that the loader runs itself, see event_offcpu_edge.bpf.c. duet_edge_ns is the edge up to which
 * sleeps are reported, duet_last_edge_ns the one before, CLOCK_MONOTONIC. duet_look_leaders: look at one thread of each
 * process only; the loader may not walk it. duet_look_again: look at those too that were shown in this sleep, because
 * not all of them were walked.
 */
extern volatile uint64_t duet_edge_ns;
extern volatile uint64_t duet_last_edge_ns; /* 0: none yet */
extern volatile bool duet_look_leaders;
extern volatile bool duet_look_again;

/*
 * Set when a thread has slept that takes no sample at the hook in use, because it has not registered rseq(2). Then the
 * loader attaches the program of the next hook.
 */
extern volatile bool duet_needs_fallback_hook;
extern volatile uint32_t duet_fallback_hook; /* enum duet_return of that hook, once it is attached */

/*
 * Maps that several files use. core.bpf.c defines them, the other files declare them: the linker of libbpf 1.1 requires
 * definitions before uses.
 */
#ifndef DUET_MAPS
#define DUET_MAPS extern
#endif
#define DUET_MAP_OF(kind, entries, key_type, value_type) \
	__uint(type, BPF_MAP_TYPE_##kind); \
	__uint(max_entries, entries); \
	__type(key, key_type); \
	__type(value, value_type)
#define DUET_MAP(name, ...) DUET_MAPS struct {DUET_MAP_OF(__VA_ARGS__);} name SEC(".maps")
/* An array that the loader writes through a memory mapping. */
#define DUET_MAPPED_ARRAY(name, entries, value_type) \
	DUET_MAPS struct { \
		DUET_MAP_OF(ARRAY, entries, u32, value_type); \
		__uint(map_flags, BPF_F_MMAPABLE); \
	} name SEC(".maps")
/* A map of one file. */
#define OWN_MAP(name, ...) struct {DUET_MAP_OF(__VA_ARGS__);} name SEC(".maps")

/* Ring buffer for records to the loader. The loader sets its size. */
DUET_MAPS struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

/* The only target maps it too. The slot is that of the tid in the thread's pid namespace. */
DUET_MAPPED_ARRAY(newest_samples, DUET_NEWEST_SLOTS, u64);

/* Processes that may be signalled. The loader inserts rows here and in the next two maps; exec and exit delete them. */
DUET_MAP(jvms, HASH, DUET_MAX_JVMS, u32, struct duet_jvm_target);
/* Processes that publish a context: as many as have unwind tables, so that nobody fills it for others. */
DUET_MAP(contexts, HASH, DUET_UNWIND_MAX_PROCESSES, u32, struct duet_context_sources);
/* Processes whose waits have holders. */
DUET_MAP(lock_waiters, HASH, 1, u32, struct duet_lock_waiters);
/* Layout of the Java frames of each JVM. A row is inserted and deleted together with its row in `jvms`. */
DUET_MAP(jvm_layouts, HASH, DUET_MAX_JVMS, u32, struct duet_jvm_entry);
/* Processes to sample, with filter_targets. From tgid to the start time in USER_HZ ticks: a tgid can be reused. */
DUET_MAP(targets, HASH, DUET_MAX_TARGETS, u32, u64);
/* Recently sampled processes, used when filter_targets is not set. Only these get a record on exec and exit. */
DUET_MAP(seen, LRU_HASH, 4096, u32, u8);
DUET_MAP(counters, PERCPU_ARRAY, DUET_BPF_COUNTER_MAX, u32, u64);
DUET_MAP(costs, PERCPU_ARRAY, DUET_MAX_EVENTS, u32, struct duet_cost);
DUET_MAP(run_times, PERCPU_ARRAY, DUET_RUN_TIMES, u32, u64);

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

/* Fills in the head of a record about the thread with these ids. */
static __always_inline void duet_begin(struct duet_record *record, enum duet_record_type type, u32 bytes, u64 time_ns,
				       u32 tgid, u32 tid)
{
	record->size = bytes;
	record->type = type;
	record->version = DUET_RECORD_VERSION;
	record->time_ns = time_ns;
	record->tgid = tgid;
	record->tid = tid;
}

/* /proc/PID/stat counts in USER_HZ, which is 100 on every Linux. */
static __always_inline u64 duet_ticks(u64 ns)
{
	return ns / 10000000;
}
