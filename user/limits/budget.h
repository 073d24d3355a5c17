/* SPDX-License-Identifier: MIT */
/*
 * --max-memory: the limit of duet's RAM as a whole, kept as one pool. Only BPF's maps have a fixed size, at most a
 * quarter of the limit, because the kernel allocates them at load time. Rings that agents write count by the pages that
 * were touched. Everything else is for the heap, and the kernel enforces the heap's limit on the loader
 * (memory_limit()). If malloc() still fails, samples are dropped. Every loss is counted. If the timeline cannot be
 * moved to disk, equal samples are merged as well.
 *
 * Without the option the limit is a share of the machine's memory, or of our cgroup's, because targets may be hostile.
 *
 * Every part is measured in real pages. The heap may use what the other parts leave; nothing in the heap has a share of
 * its own. As the pool fills, in this order:
 *
 * 1. caches are dropped;
 * 2. the tables of names from JVMs stop growing: the least used names make room for new ones;
 * 3. new stacks and threads are refused.
 *
 * Each of these ends as soon as there is room.
 */
#pragma once

#include "runtime/jvm.h"

/* Bytes of RAM. No byte is counted twice. */
struct pool_shares {
	size_t maps; /* the kernel's maps and buffers for BPF and perf, including those that the loader maps */
	size_t rings; /* pages of rings that agents or the loader have touched */
	size_t files; /* the executable and libraries */
	size_t heap; /* the loader's own pages */
};

struct pool_demand {
	size_t heap; /* allocated bytes of the heap */
	size_t stacks; /* part of `heap`: the profile; a writer needs POOL_WRITER times as much in addition */
	size_t stacks_soon; /* the same, after its tables have grown for one more stack */
	size_t writing; /* for a writer that is working now */
};

#define POOL_WRITER 3

struct pool {
	size_t max_bytes;
	struct pool_shares shares; /* at the last pool_look() */
	size_t peak_bytes; /* largest sum of all parts */
	size_t promised_bytes; /* size of all rings, touched or not */
	size_t heap_max; /* what the other parts leave for the heap */
	size_t stacks_max; /* limit for the profile */
	size_t others_peak; /* the most that the heap had beside the profile, with a writer's, when stacks were short */
	bool names_full; /* the tables of names must not grow */
	uint64_t dropped_ns; /* when caches were last dropped */
	uint64_t drop_again_ns; /* least time until they may be dropped again */
	uint64_t drops;
	size_t needed_bytes; /* estimate of the least limit that would be enough; 0 = this one is */
};

/* Callbacks of pool_step(). `measure` is called again after `drop_caches`. */
struct pool_user {
	void *context;
	void (*measure)(void *context, struct pool_demand *ret);
	void (*drop_caches)(void *context);
};

size_t pool_sum(const struct pool_shares *parts);
void pool_look(struct pool *pool, const struct pool_shares *parts);
/* Call between samples: drops caches if needed, then sets stacks_max and names_full. */
void pool_step(struct pool *pool, const struct pool_user *user, uint64_t now_ns);
/*
 * Returns the bytes for a ring's lane: `asked`, halved until LANES such lanes fit, into `share` too; 0 if not even
 * `least` fits.
 */
size_t pool_lane_bytes(const struct pool *pool, size_t share, size_t asked, size_t least);
/* Returns the limit that leaves so much for the heap, rounded up: more than the present one, which did not. */
size_t pool_limit_for(const struct pool *pool, size_t heap);
/* Estimates the limit that would be enough, from the numbers of stacks that the profile kept and refused. */
void pool_note_refused(struct pool *pool, const struct pool_demand *demand, uint64_t kept, uint64_t refused);

#define BUDGET_MIN_BYTES (32u << 20)

struct agent;
struct agent_start;
struct jvms;

struct budget {
	struct pool pool;
	struct jvms *jvms; /* with the parts that are measured, limited and emptied; not owned; set by budget_start() */
	const size_t *writer_bytes; /* size of the profile that a child is writing; 0 = none is being written */
	bool is_asked; /* the limit is --max-memory */
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
int budget_start(struct budget *budget, struct jvms *jvms, const size_t *writer_bytes);
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
