/* SPDX-License-Identifier: MIT */
/*
 * The kernel half: loads the BPF programs, attaches those of each chosen event (to a perf event on each CPU, or to a
 * tracepoint), and passes the records to the caller. No other folder uses libbpf.
 */
#pragma once

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
struct options;
struct process;
struct sleepers;
struct unwind_tables;

struct collector_options {
	const struct options *asked; /* read while it opens only */
	const struct event_list *events;
	uint32_t user_depth; /* most frames to walk */
	const pid_t *targets; /* only these processes; NULL = every process of the host */
	size_t target_count;
	bool follow_forks; /* children of targets become targets */
	uint64_t cgroup_id; /* only tasks in this cgroup or below it; 0 = any */
	const char *comm; /* only processes of this name, cut to the kernel's length of a name; NULL = any */
	size_t max_bytes; /* limit for all maps together; 0 = as large as a host may need */
	bool probes_tlabs; /* the allocations of JVMs may be sampled by BPF, see collector_probe_tlabs() */
};

/*
 * Loads the programs and opens the events; they do not tick yet. Returns 0, or -errno with one sentence appended to
 * `why` (the cause and the way out). The caller owns *ret. The other functions take NULL, a collector that has nothing.
 */
int collector_open(struct collector **ret, const struct collector_options *options, struct buf *why);
int collector_start(struct collector *collector); /* starts the ticks; 0 or -errno */
void collector_stop(struct collector *collector); /* ends the ticks for good; records in the ring can still be read */
void collector_close(struct collector *collector);

/* What does not change while it runs. */
struct collector_facts {
	struct unwind_tables *tables; /* by which BPF walks user stacks; owned by the collector */
	/*
	 * For epoll; owned by the collector. It becomes readable when a quarter of the ring is filled or a process has
	 * ended. Call collector_read() by timer as well: a wakeup for each sample would cost more than the sample.
	 */
	int fd;
	size_t maps_bytes; /* of kernel memory in BPF maps and perf rings */
	size_t mapped_bytes; /* those of them that count a second time because the loader maps them */
	bool uses_cookie;
};
struct collector_facts collector_facts(const struct collector *collector); /* zeros, and the fd -1, without one */

/* Called for each record that passed record_check(). */
typedef void (*collector_handler)(void *context, const struct duet_record *record);
/*
 * Passes the waiting records to `handler`, at most `budget`. Returns their number. Adds the number of malformed records
 * to *bad.
 */
int collector_read(struct collector *collector, collector_handler handler, void *context, int budget, uint64_t *bad);
/* Makes room in the ring: its records are kept for collector_read(), 32 MB of them. A handler may call it. */
void collector_keep(struct collector *collector);

/*
 * Adds to `log` the mappings that processes have made since the last call, and adds the number of lost records to
 * *lost. Does nothing when only known processes are sampled. When called after a sample was read, the log has the
 * mappings of the sample's process.
 */
void collector_read_mappings(struct collector *collector, struct mapping_log *log, uint64_t *lost);

/* Permits signals to a process. BPF signals no other processes. 0 or -errno. */
int collector_allow(struct collector *collector, pid_t pid, const struct duet_jvm_target *target);
/* Undoes collector_allow() and collector_describe(). 0 or -errno. */
int collector_forbid(struct collector *collector, pid_t pid);
/* Gives BPF what it needs to walk the Java frames of a process. 0 or -errno. */
int collector_describe(struct collector *collector, pid_t pid, const struct duet_jvm_entry *jvm);
/*
 * Makes BPF sample the allocations of a JVM, which collector_describe() has described or will describe, until
 * collector_forbid(). Returns 0, or -errno with one sentence appended to `why` (the cause and the way out).
 */
int collector_probe_tlabs(struct collector *collector, const struct process *process, struct buf *why);
/* With `holders`: makes BPF report who releases the locks for which threads of the process wait. 0 or -errno. */
int collector_watch_locks(struct collector *collector, pid_t pid, const struct duet_lock_waiters *waiters);
/* Returns the array of DUET_NEWEST_SHARED, the collector's; -1: BPF does not write it. */
int collector_newest_fd(const struct collector *collector);
/* Returns true if the process is a target: given when opening, or a child of a target. */
bool collector_is_target(const struct collector *collector, pid_t pid, uint64_t start_ticks);
/* Returns the number of targets that have not ended, and the first `most` of them. */
size_t collector_targets(const struct collector *collector, pid_t *ret_pids, size_t most);

/* Returns the threads that sleep; owned by the collector; NULL if no event needs them. */
struct sleepers *collector_sleepers(struct collector *collector);

/* Stores zeros without a collector, and so does collector_cost(). */
int collector_counters(const struct collector *collector, uint64_t ret_counters[DUET_BPF_COUNTER_MAX]);
#define COLLECTOR_ALL_EVENTS UINT32_MAX
/*
 * Stores the runs and the time of the sampling program on all CPUs so far, by its own clock: for one event of the list
 * as event_list_expand() makes it, or for all events together. Returns 0 or -errno.
 */
int collector_cost(const struct collector *collector, uint32_t event, struct duet_cost *ret);
/* Stores how many of the runs that made a sample fall into each class of time, see duet_config.h. 0 or -errno. */
int collector_run_times(const struct collector *collector, uint64_t ret_counts[DUET_RUN_TIMES]);
/* Returns the number of records of exec, fork and mappings that the kernel has made for the collector so far. */
uint64_t collector_mapping_records(const struct collector *collector);
/* Makes each CPU take one sample per `ticks` ticks, from its next tick on, which weighs as much as all of them. */
void collector_sample_every(struct collector *collector, uint32_t ticks);

#define COLLECTOR_PROBES_MAX 32
/* One feature that `duet check` shows. */
struct collector_probe {
	const char *name; /* "BPF system call", "BTF", "BPF ring buffer", "perf events per CPU", … */
	bool ok;
	bool required; /* false: it only improves the join or the stacks */
	char detail[200]; /* when not ok: the cause and what to change */
};
/* Writes at most `room` features to `ret` and returns their number. */
size_t collector_probe(struct collector_probe *ret, size_t room);
bool collector_is_ready(const struct collector_probe *probes, size_t count); /* true if nothing required is missing */
/* True if this machine and kernel can sample the event, or those of the family, by BPF, given the rights. */
bool collector_has_event(const struct event *event);
bool collector_has_family(const struct event_family *family);
/*
 * Returns true if this user may open perf events on their own threads that see the kernel, which engine perf needs.
 * Otherwise appends the cause and the way out.
 */
bool collector_probe_own_threads(struct buf *why);
