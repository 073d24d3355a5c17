/* SPDX-License-Identifier: MIT */
/*
 * --max-memory: the limit of duet's RAM as a whole, kept as one pool (limits/pool.h). Only BPF's maps have a fixed
 * size, at most a quarter of the limit, because the kernel allocates them at load time. Rings that agents write count
 * by the pages that were touched. Everything else is for the heap, and the kernel enforces the heap's limit on the
 * loader (memory_limit()). If malloc() still fails, samples are dropped. Every loss is counted. If the timeline cannot
 * be moved to disk, equal samples are merged as well.
 *
 * Without the option the limit is a share of the machine's memory, or of our cgroup's, because targets may be hostile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits/pool.h"
#include "runtime/jvm.h"

#define BUDGET_MIN_BYTES (32u << 20)

struct agent;
struct agent_start;
struct agents;
struct pending;
struct engine_in_use;
struct process_table;
struct profile;
struct symbols;
struct unwinding;

/* The parts that are measured, limited and emptied; not owned. */
struct budget_deps {
	const struct engine_in_use *engine;
	struct profile *profile;
	struct symbols *symbols;
	struct pending *pending;
	struct unwinding *unwinding;
	const struct agents *agents;
	const struct process_table *processes;
	const size_t *writer_bytes; /* size of the profile that a child is writing; 0 = none is being written */
	void (*release_dead)(void *context); /* frees agents and processes that have ended */
	void *context;
};

struct budget {
	struct pool pool;
	struct budget_deps of; /* set by budget_start() */
	bool is_asked; /* the limit is --max-memory */
	struct jvm_room names; /* names of all JVMs; part of the heap */
	size_t limit_before; /* the process's limit before ours, to be restored */
	uint64_t looked_ns; /* when all parts were last measured */
	uint64_t stepped_ns;
	uint64_t released_ns; /* when dead processes and agents were last freed */
	size_t sweep_at; /* number of processes at which to look for ended ones next */
	bool is_reported; /* a sufficient limit was reported */
};

/* Call before anything large is allocated. `asked`: bytes of --max-memory; 0: a share of the memory. */
void budget_open(struct budget *budget, size_t asked);
void budget_close(struct budget *budget); /* restores the limit that the process had before */
size_t budget_bpf_bytes(const struct budget *budget); /* the most that BPF's maps may take */
/* Call when the engine is open and the command forked, which must not inherit it. 0, or -errno after a report. */
int budget_start(struct budget *budget, const struct budget_deps *of);
/* Reserves the memory that an agent shares with us; may reduce sizes in *start. False: there is no room. */
bool budget_take_ring(struct budget *budget, struct agent_start *start);
/* returns the memory that budget_take_ring() took */
void budget_give_ring(struct budget *budget, const struct agent *agent);
/* Call between samples only: it drops caches, so nobody may hold pointers into them. */
void budget_step(struct budget *budget, uint64_t now_ns);
/* Makes room for a writer. May be called in a forked child: it touches nothing outside this process's memory. */
void budget_before_write(struct budget *budget);
/* Call when the profile is complete. If stacks were refused, says once which limit would have been enough. */
void budget_report_need(struct budget *budget);
