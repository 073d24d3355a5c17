/* SPDX-License-Identifier: MIT */
/*
 * The engines: BPF, or the agent's own perf events and timers where BPF is refused. A row says what an engine can do,
 * and whether it can run. Only the bpf engine does a part of the work outside of the JVMs: that of its collector.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "collect/collector.h"
#include "duet_agent.h"
#include "event/options.h"

struct engine_in_use;

struct engine {
	const char *name; /* --engine NAME */
	enum duet_engine_id agent; /* sent to the agent; 0 for auto */
	bool standalone; /* ticks in the agent, without BPF: it samples only JVMs with an agent */
	bool sees_kernel;
	bool counts; /* standalone engines: it can tick for page faults in place of CPU time */
	const char *help;
	const char *instead; /* standalone engines: what the user must know when it is used because BPF is refused */
	/* Returns false, with the cause and the way out in `why`, if it cannot run here. NULL: it can run anywhere. */
	bool (*usable)(struct buf *why);
};

/* The engine of a recording. A standalone engine has NULL, 0 and -1 in the other fields. */
struct engine_in_use {
	const struct engine *row;
	struct collector *collector; /* for what engine_*() does not do */
	struct unwind_tables *tables; /* walks all processes; owned by the collector */
	int fd; /* becomes readable when there is much to read */
	/* bytes of kernel memory, and those of them that count a second time because the loader maps them */
	size_t maps_bytes, mapped_bytes;
	bool uses_cookie;
};

extern const struct engine engines[]; /* indexed by enum session_engine; the last row has no name */
int engine_by_name(const char *name); /* enum session_engine, or -EINVAL */
void engine_names(struct buf *out); /* appends "auto, bpf, perf, ctimer or itimer" */
/* Returns true if it can sample these events together. */
bool engine_takes(enum session_engine engine, const struct event_list *events);
/*
 * Returns the first standalone engine that can run here and samples these events (NULL: any); ENGINE_AUTO if there is
 * none. Appends to `why` what the better ones lack.
 */
enum session_engine engine_standalone(const struct event_list *events, struct buf *why);

/*
 * These are the functions of collector.h, which do nothing and return 0 without a collector. engine_open() returns 0,
 * or -errno with one sentence appended to `why`. *ret can be closed in any case.
 */
int engine_open(struct engine_in_use *ret, enum session_engine id, const struct collector_options *options,
		struct buf *why);
void engine_close(struct engine_in_use *engine);
int engine_start(const struct engine_in_use *engine);
void engine_stop(const struct engine_in_use *engine);
int engine_read(const struct engine_in_use *engine, collector_handler handler, void *context, int budget,
		uint64_t *bad);
void engine_read_mappings(const struct engine_in_use *engine, struct mapping_log *log, uint64_t *lost);
bool engine_is_target(const struct engine_in_use *engine, pid_t pid, uint64_t start_ticks);
size_t engine_targets(const struct engine_in_use *engine, pid_t *ret_pids, size_t most);
int engine_allow(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_target *target);
int engine_describe(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_entry *jvm);
void engine_forbid(const struct engine_in_use *engine, pid_t pid);
int engine_watch_locks(const struct engine_in_use *engine, pid_t pid, const struct duet_lock_waiters *waiters);
/* -ENOTSUP without a collector, with one sentence appended to `why`. */
int engine_probe_tlabs(const struct engine_in_use *engine, const struct process *process, struct buf *why);
/* These write zeros without a collector. */
int engine_counters(const struct engine_in_use *engine, uint64_t ret_counters[DUET_BPF_COUNTER_MAX]);
int engine_cost(const struct engine_in_use *engine, uint32_t event, struct duet_cost *ret);
int engine_run_times(const struct engine_in_use *engine, uint64_t ret_counts[DUET_RUN_TIMES]);
uint64_t engine_mapping_records(const struct engine_in_use *engine);
void engine_sample_every(const struct engine_in_use *engine, uint32_t ticks);
