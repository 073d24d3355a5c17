/* SPDX-License-Identifier: MIT */
/* Adds decided samples to the profile, each with its stack, thread and owner, and counts them. */
#ifndef JOIN_DECIDED_H
#define JOIN_DECIDED_H

#include <stdbool.h>
#include <stdint.h>

#include "join/join.h"
#include "join/outcomes.h"
#include "join/resolve.h"

struct owners;

struct decided {
	struct profile *profile; /* not owned, like the three below it */
	struct owners *owners;
	const uint64_t *windows; /* number of windows written */
	bool has_bpf; /* BPF's samples have a cgroup, the agents' have none */
	struct resolver resolver;
	struct outcomes outcomes;
};

/* Release with resolver_release(). */
void decided_init(struct decided *decided, struct profile *profile, struct symbols *symbols, struct owners *owners,
		  const uint64_t *windows);
/*
 * Arguments are as for join_handler. `jvm` is NULL for a sample of no JVM. Returns false, with nothing added, while
 * names are missing that may still arrive: they are in resolver.wants. Not when `last_chance`.
 */
bool decided_add(struct decided *decided, struct process *process, const struct jvm *jvm,
		 const struct duet_sample *sample, const struct duet_java_sample *java, enum join_outcome outcome,
		 bool last_chance);

#endif
