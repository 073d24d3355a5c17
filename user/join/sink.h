/* SPDX-License-Identifier: MIT */
/* Adds decided samples to the profile, each with its stack, thread and owner, and counts them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "join/decision.h"
#include "join/holders.h"
#include "join/outcomes.h"
#include "join/resolve.h"

struct owners;

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

/* Adds the sample with the names that are known now. `own`: what resolve_stack() returned for it just now. */
void sink_add(struct sink *sink, const struct decision *of, struct resolved own, const struct sink_company *with);
/* Returns true if the kernel's frames of the record are those of an interrupt. */
bool sink_is_interrupt(struct sink *sink, const struct decision *of);
