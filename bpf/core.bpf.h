/* SPDX-License-Identifier: GPL-2.0-only */
/* What every program shares: configuration, maps, counting and emitting. Defined in core.bpf.c. */
#ifndef DUET_CORE_BPF_H
#define DUET_CORE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "duet_config.h"
#include "duet_counters.h"
#include "duet_jvm.h"
#include "duet_record.h"

/* Read-only once loaded: the verifier knows the values and drops the branches that they switch off. */
extern const volatile struct duet_config duet_config;

/* Of so many ticks of a CPU, beside the event's own gap, one becomes a sample. The loader changes it at run time. */
extern volatile uint32_t duet_every;

/* Records to the loader, who sets the size. */
struct duet_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};
extern struct duet_ring_map ring SEC(".maps");

/* Processes that may be signalled; the loader inserts, exec and exit delete. */
struct duet_jvms_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_JVMS);
	__type(key, u32);
	__type(value, struct duet_jvm_target);
};
extern struct duet_jvms_map jvms SEC(".maps");

/* How their JVMs lay out Java frames; inserted and deleted as their row in `jvms` is. */
struct duet_layouts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_JVMS);
	__type(key, u32);
	__type(value, struct duet_jvm_entry);
};
extern struct duet_layouts_map jvm_layouts SEC(".maps");

/* Processes to sample (when filter_targets): tgid -> start time in USER_HZ ticks, since a tgid alone is reused. */
struct duet_targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DUET_MAX_TARGETS);
	__type(key, u32);
	__type(value, u64);
};
extern struct duet_targets_map targets SEC(".maps");

/* Processes that gave a sample lately (unless filter_targets): only their exec and exit are worth a record. */
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

/* How the recording samples its event of this index. The mask is for the verifier. */
static __always_inline const volatile struct duet_event *duet_event(u32 event)
{
	return &duet_config.events[event & (DUET_MAX_EVENTS - 1)];
}

static __always_inline void duet_count(enum duet_bpf_counter counter)
{
	u32 key = counter;
	u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		(*value)++;
}

/*
 * A wakeup costs an interrupt, so the loader reads by timer and is woken only
 * when a quarter of the ring waits for it.
 */
static __always_inline u64 duet_wakeup_flag(void)
{
	u64 waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	return waiting > bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* `bytes` again, beside record->size: the verifier must see its bound. */
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

#endif
