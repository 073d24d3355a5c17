/* SPDX-License-Identifier: MIT */
/*
 * From a decided sample to its stack in the profile: spliced, then addresses and method ids get their names. Equal
 * stacks are the rule, so what a stack has become is remembered.
 */
#ifndef PROFILE_RESOLVE_H
#define PROFILE_RESOLVE_H

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
	struct splice splice; /* of the last stack */
	struct vec(uint32_t) frames; /* the same, root first */
	struct vec(struct duet_want) wants; /* what it lacks, when the answer was -EAGAIN */
	struct map stacks; /* hash of all that decides about a stack -> node of the profile */
	struct map addresses; /* hash of process, its mappings and an address in it -> frame of the profile */
	uint64_t epoch; /* of what is remembered */
	uint64_t seed; /* of that hash: nobody can make two stacks meet */
	uint64_t names_missing; /* Java frames that stayed without a name */
	uint64_t stacks_full; /* samples whose stack is not shown: their process had added too many */
	uint64_t memory_full; /* the same: all together have reached the limit */
	uint64_t kept; /* stacks that were new to the profile */
	struct distinct refused; /* those that had no room */
	bool is_closed; /* what is new to the profile has no room */
	bool is_final; /* every name of the last stack is the best there will be */
};

void resolver_init(struct resolver *resolver, struct profile *profile, struct symbols *symbols);
void resolver_release(struct resolver *resolver);
void resolver_forget(struct resolver *resolver); /* what is remembered can be made again */

void resolver_new_profile(struct resolver *resolver); /* the profile's frames and stacks are others now */

/*
 * The profile's node of the stack, arguments as of join_handler and splice_stack(). -ENOMEM; -EAGAIN when Java
 * frames have no name yet, which are then in `wants`, not when `last_chance`.
 */
int64_t resolve_sample(struct resolver *resolver, struct process *process, const struct jvm *jvm,
		       const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome,
		       bool last_chance);

#endif
