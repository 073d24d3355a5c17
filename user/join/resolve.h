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

struct resolver {
	struct profile *profile;
	struct symbols *symbols;
	struct splice splice; /* the last stack */
	uint64_t time_ns; /* of the last sample */
	const struct duet_attribute *object_class; /* what the sample's code has allocated: the leaf; or NULL */
	struct vec(uint32_t) frames; /* its frames in the profile, root first */
	struct vec(struct duet_want) wants; /* what to ask the agent for when resolve_sample() returned -EAGAIN */
	struct map stacks; /* cache: hash of all that a stack depends on -> node of the profile */
	struct map addresses; /* cache: hash of a process, its mappings and an address -> frame of the profile */
	uint64_t epoch; /* period of time in which the caches were filled */
	uint64_t seed; /* random seed of the hashes, so that no process can make two stacks collide */
	uint64_t names_missing; /* Java frames of the last stack that stayed without a name */
	uint64_t kept; /* stacks that were new to the profile */
	struct distinct refused; /* stacks that were new to a full profile */
	bool is_closed; /* nothing new is added to the profile, because it is full */
	bool is_final; /* no name of the last stack can get better, so the result may be cached */
};

void resolver_init(struct resolver *resolver, struct profile *profile, struct symbols *symbols);
void resolver_release(struct resolver *resolver);
/* Call for each process when the profile is exchanged: its frames and stacks no longer count. */
void resolver_forget_process(struct process *process);
void resolver_forget(struct resolver *resolver); /* empties the caches, which fill again */

/* Called after profile_exchange(), when indices of frames and stacks are no longer valid. */
void resolver_new_profile(struct resolver *resolver);

/*
 * Returns the profile's node of the sample's stack, or -ENOMEM. Arguments are as for join_handler and splice_stack().
 * Returns -EAGAIN, with the missing names and code in `wants`, while these may still arrive; never if `last_chance`.
 */
int64_t resolve_sample(struct resolver *resolver, struct process *process, const struct jvm *jvm,
		       const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome,
		       bool last_chance);

#endif
