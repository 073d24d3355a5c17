/* SPDX-License-Identifier: MIT */
/*
 * Walks sleeping threads from outside, with the arithmetic, the unwind rows and the JVMs' layouts that BPF uses. BPF
 * cannot read the memory of a thread that does not run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "duet_record.h"

struct duet_bpf;
struct sleeper_walker;

/* Maps BPF's tables. Returns NULL when out of memory. Close it soon: the tables count as our memory while mapped. */
struct sleeper_walker *sleeper_walker_open(const struct duet_bpf *bpf, uint32_t user_depth);
void sleeper_walker_close(struct sleeper_walker *walker);

/* A thread that was walked, in its last sleep that was. */
struct sleeper_walked {
	uint64_t switches; /* of the thread when it was shown */
	bool is_reported; /* BPF reported its sleep at the current edge; false after the walk */
	struct duet_sample sample; /* with the user frames */
};

/*
 * Walks threads of one process. For each thread, passes to `keep` what was walked, which `keep` owns then and frees;
 * NULL when out of memory. A stack that cannot be read has no user frames but the leaf.
 */
typedef void (*sleeper_keep)(void *context, const struct duet_sleeper *sleeper, struct sleeper_walked *walked);
void sleeper_walk(struct sleeper_walker *walker, const struct duet_sleeper *const *sleepers, size_t count,
		  sleeper_keep keep, void *context);
