/* SPDX-License-Identifier: MIT */
/*
 * --max-memory: what duet may have in RAM, all told: one pool (limits/pool.h). BPF's maps alone have a fixed size, a
 * quarter of the limit at most, because the kernel allocates them when they load; the rings that agents write count as
 * far as they are touched; all that is left is the heap's, and the kernel holds the loader to it (memory_limit()).
 * Where malloc() fails nevertheless, samples are dropped. Whatever is lost is counted. Beside it the timeline, where it
 * has no disk, merges equal samples.
 *
 * Without the option the limit is a part of the machine's memory, or of our cgroup's: targets may be hostile.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits/pool.h"
#include "runtime/jvm.h"

#define BUDGET_MIN_BYTES (32u << 20)

struct agent;
struct agent_start;
struct session;
struct budget {
	struct pool pool;
	struct jvm_room names; /* of all JVMs; of the heap */
	size_t maps_bytes; /* BPF's; they do not change once loaded */
	size_t mapped_bytes; /* of them, what counts among our own files' pages too */
	size_t writer_bytes; /* of the profile that a child writes */
	size_t limit_before; /* what else limits this process */
	uint64_t looked_ns; /* at all parts */
	uint64_t stepped_ns;
	uint64_t released_ns; /* what has ended, last */
	uint64_t jvms_refused; /* for whose ring there was no room */
	uint64_t threads_full; /* samples under [others] */
	size_t sweep_at; /* processes, for the next look at who has ended */
	bool is_told; /* which limit would do */
};

/* What is the limit when none is asked for. */
size_t budget_default_bytes(void);
/* Before anything large is allocated. */
void budget_open(struct session *session);
void budget_close(struct session *session);
size_t budget_bpf_bytes(const struct session *session);
/* Once BPF is loaded and the command, which must not inherit it, forked. 0, or -errno after the user has been told. */
int budget_start(struct session *session);
/* Bytes for what one more agent shares with us, no more than asked for; false when there is no room for it. */
bool budget_take_ring(struct session *session, struct agent_start *start);
void budget_give_ring(struct session *session, const struct agent *agent);
/* Between samples: nobody holds a pointer into what can be dropped. */
void budget_step(struct session *session, uint64_t now_ns);
void budget_writer_started(struct session *session); /* a child writes the profile as it is now */
/* Makes room for a writer, which may be a child of ours: nothing outside this process's memory is touched. */
void budget_before_write(struct session *session);
/* The profile is complete: if stacks had no room in it, says once which limit would have done. */
void budget_tell_need(struct session *session);

#endif
