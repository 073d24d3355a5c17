/* SPDX-License-Identifier: MIT */
/* Adds decided samples to the profile, each with its stack, thread and owner, and counts them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_counters.h"
#include "join/join.h"
#include "join/holders.h"
#include "join/resolve.h"

struct owners;

#define OUTCOMES_FAILURES 12 /* AsyncGetCallTrace returns 0 to -10; the last slot is for anything else */

/* All fields are uint64_t, see outcomes_since(). Initialize with {0}. */
struct outcomes {
	/* added to the profile; one that is decided may be several: a sleep, and its wait for a CPU at the end */
	uint64_t samples;
	uint64_t jvm_samples; /* samples of threads of JVMs with an agent */
	uint64_t joined;
	uint64_t needed; /* signalled because the walk was not whole or met methods without a name */
	uint64_t checked; /* signalled only as a cross-check */
	uint64_t rooted; /* JVM samples whose walk reached the thread's entry */
	uint64_t witnesses[SPLICE_WITNESSES_MAX]; /* indexed by enum splice_witnesses */
	uint64_t bcis[ALIKE_MAX]; /* indexed by enum alike: Java stacks whose witnesses have byte code indices */
	uint64_t names[ALIKE_MAX]; /* indexed by enum alike: Java stacks that two sources named, or one */
	uint64_t estimated; /* Java stacks with inlined methods that the compiler has not recorded */
	uint64_t unrecorded; /* of these, by JVMs without -XX:+DebugNonSafepoints */
	uint64_t lock_ns, held_ns; /* with --holders: of waits for locks, and of those whose holder is known */
	uint64_t walk_ends[DUET_WALK_END_MAX]; /* why the walks of the other JVM samples ended */
	uint64_t failures[OUTCOMES_FAILURES]; /* indexed by -status of AsyncGetCallTrace */
	/* samples of the agents' own threads that BPF counted as unsignalled */
	uint64_t own_unsignalled[DUET_BPF_COUNTER_MAX];
};

/* Nothing here is owned. */
struct sink_deps {
	const struct options *options;
	struct profile *profile;
	struct symbols *symbols;
	struct owners *owners;
	const uint64_t *windows; /* number of windows written */
};

/* The name of the thread whose name was read last. A thread without a name in its samples has many of them. */
struct sink_comm {
	pid_t pid;
	uint32_t tid;
	uint64_t read_ns;
	char text[32];
};

/* The owner fills in `of`, initializes the resolver, and releases it. */
struct sink {
	struct sink_deps of;
	bool has_bpf; /* BPF's samples have a cgroup, the agents' have none */
	/* samples of `clock` that are of CPU time are `other_clock`'s, too; the same: there is no other */
	uint32_t clock, other_clock;
	struct sink_comm comm;
	struct resolver resolver;
	struct outcomes outcomes;
};

/* Other records that a sample's stack is shown with. */
struct sink_company {
	const struct decision *waker; /* of a sleep: who ended it; NULL: not known */
	const struct holding *parts; /* of a wait for a lock: who held it, see join/holders.h */
	size_t part_count;
};

/* Without BPF: an agent ticks for one clock of these events; the other one, if there is one, has its samples too. */
void sink_share_clock(struct sink *sink, const struct event_list *events);
/* Adds the sample with the names that are known now. `own`: what resolve_stack() returned for it just now. */
void sink_add(struct sink *sink, const struct decision *of, struct resolved own, const struct sink_company *with);
/* Returns true if the kernel's frames of the record are those of an interrupt. */
bool sink_is_interrupt(struct sink *sink, const struct decision *of);

/* Counts a sample of an agent's own thread, which takes no signals. That BPF did not signal it is no loss. */
void outcomes_add_own(struct outcomes *outcomes, const struct duet_sample *sample);
/* Returns the counts since `before`. */
struct outcomes outcomes_since(const struct outcomes *now, const struct outcomes *before);
