/* SPDX-License-Identifier: MIT */
/* Turns a decided sample into a stack of the profile: splices and names it. Results are cached. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "event/options.h"
#include "join/join.h"
#include "join/splice.h"
#include "profile/profile.h"
#include "sym/symbols.h"

struct resolver_rows vec(uint32_t);

struct resolver {
	struct profile *profile;
	struct symbols *symbols;
	const struct options *options;
	uint32_t cpu_events; /* events, by index, whose stacks begin with the CPU */
	struct splice splice; /* of the newest call of resolve_stack() that did not take the stack from the cache */
	uint64_t splices; /* number of these calls */
	struct resolver_rows rows; /* frames of a stack; reused from stack to stack, as are … */
	struct vec(struct duet_want) wants; /* … these */
	struct map stacks; /* cache: hash of all that a stack depends on -> node of the profile */
	struct map addresses; /* cache: hash of a process, its mappings and an address -> frame of the profile */
	uint64_t epoch; /* period of time in which the caches were filled */
	uint64_t seed; /* random seed of the hashes, so that no process can make two stacks collide */
	uint64_t kept; /* stacks that were new to the profile */
	struct distinct refused; /* stacks that were new to a full profile */
};

/* What is known of the stack of a decision. */
struct resolved {
	const struct duet_want *wants; /* what its JVM may still answer; valid until the next call of the resolver */
	size_t want_count; /* 0: resolve_node() names all that can be named */
	struct splice_verdict verdict;
	int64_t node; /* in the profile, -errno, or RESOLVED_NODE_UNKNOWN before resolve_node() */
	uint64_t key; /* in the cache of stacks */
	uint64_t splice; /* resolver->splices after the call */
	bool is_refused; /* the process has added too many stacks: it is a single mark */
};

#define RESOLVED_NODE_UNKNOWN INT64_MAX

void resolver_init(struct resolver *resolver, const struct options *options, struct profile *profile,
		   struct symbols *symbols);
void resolver_release(struct resolver *resolver);
void resolver_forget(struct resolver *resolver); /* empties the caches, which fill again */

/* Called after profile_exchange(), when indices of frames and stacks are no longer valid. */
void resolver_new_profile(struct resolver *resolver);

/* The number of frames and stack nodes that the process's samples have added to the profile; 0 in a new profile. */
uint64_t *resolver_rows(struct process *process);
bool resolver_has_room(struct process *process); /* false if these are as many as one may add */
/* True if nothing new may be added for the process: the profile is full, or its user has his share of it. */
bool resolver_is_closed(const struct profile *profile, const struct process *process);
/* Counts what was added for the process since the profile had `before`. */
void resolver_count_rows(const struct profile *profile, struct process *process, const struct profile_rows *before);

/* Splices the stack, unless it is in the cache. */
struct resolved resolve_stack(struct resolver *resolver, const struct decision *decision);
/*
 * Returns the profile's node of the stack that resolve_stack() returned for the same decision, or -ENOMEM. Frames
 * without a name become marks. Both must be called for one state of the JVM: no record of it is read in between.
 */
int64_t resolve_node(struct resolver *resolver, const struct decision *decision, struct resolved *resolved);
