/* SPDX-License-Identifier: MIT */
/*
 * --max-memory: what the loader may have in RAM, all told. A quarter goes to BPF's maps, which the kernel allocates
 * when they load, a quarter at most to the rings that agents write, the rest is the loader's own, and the kernel holds
 * it to that (memory_limit()). As it fills, in this order:
 *
 * 1. what can be made again is dropped: remembered stacks and addresses, symbols of files, processes that have ended;
 * 2. tables of JVMs take nothing new: names are lost;
 * 3. new stacks go under [too_many_stacks], new threads under [others]: no weight is lost;
 * 4. where malloc() fails, samples are dropped.
 *
 * All are counted. Beside it the timeline, where it has no disk, merges equal samples. The profile itself may fill a
 * fifth, so that a writer, who needs three times as much, has it when the caches are dropped.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_MIN_BYTES (32u << 20)

struct agent;
struct agent_start;
struct session;
struct budget {
	size_t max_bytes; /* 0 = no limit */
	size_t heap_bytes; /* the loader's own part */
	size_t rings_bytes; /* of all agents that have one */
	size_t limit_before; /* what else limits this process */
	uint64_t released_ns; /* what has ended, last */
	uint64_t dropped_ns; /* when caches last were */
	uint64_t drops;
	uint64_t jvms_refused; /* for whose ring there was no room */
	uint64_t threads_full; /* samples under [others] */
	size_t sweep_at; /* processes, for the next look at who has ended */
	bool is_warned;
};

/* Before anything large is allocated. */
void budget_open(struct session *session);
void budget_close(struct session *session);
/* For collector_options; 0 = no limit. */
size_t budget_bpf_bytes(const struct session *session);
/* Once BPF is loaded and the command, which must not inherit it, forked. 0, or -errno after the user has been told. */
int budget_start(struct session *session);
/* Bytes for what one more agent shares with us, no more than asked for; false when there is no room for it. */
bool budget_take_ring(struct session *session, struct agent_start *start);
void budget_give_ring(struct session *session, const struct agent *agent);
/* Between samples: nobody holds a pointer into what can be dropped. */
void budget_step(struct session *session, uint64_t now_ns);
/* Makes room for a writer, which may be a child of ours: nothing outside this process's memory is touched. */
void budget_before_write(struct session *session);
size_t budget_peak_bytes(void); /* the most RAM this process ever had */

#endif
