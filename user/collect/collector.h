/* SPDX-License-Identifier: MIT */
/*
 * The kernel half: loads the BPF programs of the chosen events, opens a perf event on each CPU for each of them, and
 * hands over their records. The only folder that knows libbpf.
 */
#ifndef COLLECT_COLLECTOR_H
#define COLLECT_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "duet_config.h"
#include "duet_counters.h"
#include "duet_jvm.h"
#include "duet_record.h"
#include "event/event.h"

struct collector;
struct mapping_log;
struct unwind_tables;

struct collector_options {
	const struct event_list *events;
	uint32_t user_depth; /* frames to walk */
	bool keep_all; /* of deep stacks too: then DUET_RECORD_FRAMES come before their samples */
	uint32_t kernel_depth; /* 0 = --all-user */
	const pid_t *targets; /* only these processes; NULL = every process of the host */
	size_t target_count;
	bool follow_forks; /* the children of targets are targets */
	uint64_t cgroup_id; /* only tasks in this cgroup or below; 0 = in any */
	const char *comm; /* only processes of this name, compared as far as the kernel keeps it; NULL = any */
	enum duet_signals signals;
	size_t max_bytes; /* of all maps; 0 = as large as a host may need */
	bool no_cookie; /* pair by interval even where the kernel has cookies; for tests */
};

/* Loads, verifies and opens, but does not tick yet. -errno with one sentence in `why` (cause and way out). */
int collector_open(struct collector **ret, const struct collector_options *options, struct buf *why);
int collector_start(struct collector *collector); /* events tick from here; 0 or -errno */
void collector_stop(struct collector *collector); /* no more ticks, for good; records in the ring can still be read */
void collector_close(struct collector *collector);

/*
 * For epoll. Wakes when a quarter of the ring waits or a process ended; call
 * collector_read() by timer as well, since a wakeup for every sample would cost more than the sample.
 */
int collector_fd(const struct collector *collector);
bool collector_uses_cookie(const struct collector *collector);

/* Called for each record that passed record_check(). */
typedef void (*collector_handler)(void *context, const struct duet_record *record);
/* Hands over what is there, at most `budget` records. Records consumed, or -errno. *bad counts malformed ones. */
int collector_read(struct collector *collector, collector_handler handler, void *context, int budget, uint64_t *bad);

/*
 * What processes have mapped, where any may be sampled: takes it into the log, and adds to *lost what the kernel had no
 * room for. A sample's process has its mappings in the log when this is called after the sample was read.
 */
void collector_read_mappings(struct collector *collector, struct mapping_log *log, uint64_t *lost);

/* Signals: only processes in this map are ever signalled. */
int collector_allow(struct collector *collector, pid_t pid, const struct duet_jvm_target *target);
int collector_forbid(struct collector *collector, pid_t pid);
/* How to walk the Java frames of that process; collector_forbid() ends that too. */
int collector_describe(struct collector *collector, pid_t pid, const struct duet_jvm_entry *jvm);
int collector_add_target(struct collector *collector, pid_t pid);

/* The kernel's memory for maps and perf's rings; how much of it our mappings let count as ours once more. */
size_t collector_bytes(const struct collector *collector);
size_t collector_mapped_bytes(const struct collector *collector);
/* What BPF walks user stacks by; the collector's own. */
struct unwind_tables *collector_unwind_tables(const struct collector *collector);

int collector_counters(const struct collector *collector, uint64_t ret_counters[DUET_BPF_COUNTER_MAX]);
/*
 * What the sampling program has done and cost on all CPUs so far, by its own clock: for one event of the list, or for
 * all together. 0 or -errno.
 */
int collector_event_cost(const struct collector *collector, uint32_t event, struct duet_cost *ret);
int collector_cost(const struct collector *collector, struct duet_cost *ret);
/* Of the runs that made a sample, how many took so long: duet_config.h. 0 or -errno. */
int collector_run_times(const struct collector *collector, uint64_t ret_counts[DUET_RUN_TIMES]);
/* How many records of exec, fork and mappings the kernel has made for us. */
uint64_t collector_mapping_records(const struct collector *collector);
/* From the next tick on each CPU: of so many of its ticks one becomes a sample, which weighs as much as all of them. */
void collector_sample_every(struct collector *collector, uint32_t ticks);

/* For `duet check`: one feature after the other, each with its verdict in words. */
struct collector_probe {
	const char *name; /* "BPF system call", "BTF", "BPF ring buffer", "perf events per CPU", … */
	bool ok;
	bool required; /* false: only makes the join or the stacks better */
	char detail[200]; /* when not ok: the cause and what to change */
};
size_t collector_probe(struct collector_probe *ret, size_t room);

#endif
