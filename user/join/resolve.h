/* SPDX-License-Identifier: MIT */
/*
 * Turns a decided sample into a stack of the profile: splices it and gives names to its addresses and method ids. Most
 * stacks repeat, so the results are cached.
 */
#ifndef JOIN_RESOLVE_H
#define JOIN_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/distinct.h"
#include "base/map.h"
#include "base/vec.h"
#include "join/splice.h"
#include "profile/profile.h"
#include "sym/symbols.h"

/* A sample as the join has decided it. */
struct decision {
	void *owner; /* as for join_handler; NULL if it has none */
	struct process *process;
	const struct jvm *jvm; /* NULL for a sample of no JVM */
	const struct duet_sample *sample;
	const struct duet_java_sample *java; /* NULL for unjoined ones */
	enum join_outcome outcome;
};

struct resolver {
	struct profile *profile;
	struct symbols *symbols;
	struct splice splice; /* the last stack */
	int64_t node; /* its node in the profile, -errno, or NODE_UNKNOWN */
	uint64_t key; /* of the last stack in `stacks` */
	struct jvm_moment then; /* time and state of classes of the last sample */
	uint16_t sleep; /* flags of the last sample that are about a sleep */
	bool is_called; /* the last sample was taken where Java code called the agent */
	/* set before resolve_stack(): only the part of a sleep in which the thread waited for a CPU */
	bool is_runnable;
	/* set before resolve_stack(): events, by index, whose stacks begin with the CPU; and whether with the policy */
	uint32_t cpu_events;
	bool tells_policy;
	bool tells_offsets; /* set before resolve_stack(): native frames have the offset of their instruction */
	uint32_t cpu, policy; /* of the last sample, as it has them; 0: the stack has no such frame */
	/* class of the object that the sample is about, which becomes the leaf; or NULL */
	const struct duet_attribute *object_class;
	const struct duet_attribute *resource; /* what the sample's I/O is about, which becomes the leaf; or NULL */
	/* what the sample's time was spent on, which becomes the leaf; or NULL */
	const struct duet_attribute *spent_on;
	/* what the program has reported, which is the whole stack: the tag of a span, or an event; or NULL */
	const struct duet_attribute *span;
	struct vec(uint32_t) frames; /* its frames in the profile, root first */
	struct vec(struct duet_want) wants; /* what to ask the agent for when resolve_stack() returned false */
	struct map stacks; /* cache: hash of all that a stack depends on -> node of the profile */
	struct map addresses; /* cache: hash of a process, its mappings and an address -> frame of the profile */
	uint64_t epoch; /* period of time in which the caches were filled */
	uint64_t seed; /* random seed of the hashes, so that no process can make two stacks collide */
	uint64_t names_missing; /* Java frames of the last stack that stayed without a name */
	uint64_t kept; /* stacks that were new to the profile */
	struct distinct refused; /* stacks that were new to a full profile */
	bool is_closed; /* nothing new is added to the profile, because it is full */
	bool is_current; /* nothing in the last sample's JVM has changed since */
	bool is_final; /* no name of the last stack can change, so the result may be cached */
};

void resolver_init(struct resolver *resolver, struct profile *profile, struct symbols *symbols);
void resolver_release(struct resolver *resolver);
/* Call for each process when the profile is exchanged: its frames and stacks are counted from 0 again. */
void resolver_forget_process(struct process *process);
void resolver_forget(struct resolver *resolver); /* empties the caches, which fill again */

/* Called after profile_exchange(), when indices of frames and stacks are no longer valid. */
void resolver_new_profile(struct resolver *resolver);

/* Returns false if the process has added as many stacks as one may. resolver_count() counts what others add for it. */
bool resolver_has_room(struct process *process);
void resolver_count(struct process *process, size_t rows);

/* Splices the stack. Returns false if names or code are missing: `wants` has those that may still arrive. */
bool resolve_stack(struct resolver *resolver, const struct decision *decision);
/*
 * Returns the profile's node of the stack of the last call of resolve_stack(), or -ENOMEM. Frames without a name become
 * marks.
 */
int64_t resolve_node(struct resolver *resolver, const struct decision *decision);

#endif
