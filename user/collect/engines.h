/* SPDX-License-Identifier: MIT */
/*
 * The engines: BPF, or the agent's own perf events and timers where BPF is refused. A row says what an engine can do,
 * and has the functions that do its part outside of the JVMs. engine_start() and the others call the functions of the
 * engine in use.
 */
#ifndef COLLECT_ENGINES_H
#define COLLECT_ENGINES_H

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

	/*
	 * Its part outside of the JVMs. All NULL: the agents do everything. Each function is like the one of the same
	 * name in collector.h.
	 */
	int (*open)(struct engine_in_use *engine, const struct collector_options *options, struct buf *why);
	void (*close)(struct collector *collector);
	int (*start)(struct collector *collector);
	void (*stop)(struct collector *collector);
	int (*read)(struct collector *collector, collector_handler handler, void *context, int budget, uint64_t *bad);
	void (*read_mappings)(struct collector *collector, struct mapping_log *log, uint64_t *lost);
	bool (*is_target)(const struct collector *collector, pid_t pid, uint64_t start_ticks);
	size_t (*targets)(const struct collector *collector, pid_t *ret_pids, size_t most);
	int (*allow)(struct collector *collector, pid_t pid, const struct duet_jvm_target *target);
	int (*describe)(struct collector *collector, pid_t pid, const struct duet_jvm_entry *jvm);
	int (*forbid)(struct collector *collector, pid_t pid);
	int (*watch_locks)(struct collector *collector, pid_t pid, const struct duet_lock_waiters *waiters);
	int (*probe_tlabs)(struct collector *collector, const struct process *process, struct buf *why);
	int (*counters)(const struct collector *collector, uint64_t ret_counters[DUET_BPF_COUNTER_MAX]);
	int (*cost)(const struct collector *collector, uint32_t event, struct duet_cost *ret);
	int (*run_times)(const struct collector *collector, uint64_t ret_counts[DUET_RUN_TIMES]);
	uint64_t (*mapping_records)(const struct collector *collector);
	void (*sample_every)(struct collector *collector, uint32_t ticks);
};

/* The engine of a recording. open() sets the other fields. An engine without open() leaves NULL, 0 and -1 in them. */
struct engine_in_use {
	const struct engine *row;
	struct collector *collector;
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
 * in_use.c: these call the row's functions, and do nothing for a row that has none. Those that return int return 0
 * then. engine_open() returns 0, or -errno with one sentence appended to `why`. *ret can be closed in any case.
 */
int engine_open(struct engine_in_use *ret, enum session_engine id, const struct collector_options *options,
		struct buf *why);
void engine_close(struct engine_in_use *engine);
int engine_start(const struct engine_in_use *engine);
void engine_stop(const struct engine_in_use *engine);
int engine_read(const struct engine_in_use *engine, collector_handler handler, void *context, int budget,
		uint64_t *bad);
void engine_read_mappings(const struct engine_in_use *engine, struct mapping_log *log, uint64_t *lost);
/* Return false and 0 if the row has no such function. */
bool engine_is_target(const struct engine_in_use *engine, pid_t pid, uint64_t start_ticks);
size_t engine_targets(const struct engine_in_use *engine, pid_t *ret_pids, size_t most);
int engine_allow(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_target *target);
int engine_describe(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_entry *jvm);
void engine_forbid(const struct engine_in_use *engine, pid_t pid);
int engine_watch_locks(const struct engine_in_use *engine, pid_t pid, const struct duet_lock_waiters *waiters);
/* -ENOTSUP, with one sentence appended to `why`, if the row has no such function. */
int engine_probe_tlabs(const struct engine_in_use *engine, const struct process *process, struct buf *why);
/* These write zeros if the row has no such function. */
int engine_counters(const struct engine_in_use *engine, uint64_t ret_counters[DUET_BPF_COUNTER_MAX]);
int engine_cost(const struct engine_in_use *engine, uint32_t event, struct duet_cost *ret);
uint64_t engine_mapping_records(const struct engine_in_use *engine);

#endif
