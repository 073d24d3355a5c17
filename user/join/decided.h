/* SPDX-License-Identifier: MIT */
/*
 * Adds decided samples to the profile, each with its stack, thread and owner, and counts them. Samples whose names are
 * still missing wait for the answer of the JVM's agent or reader.
 */
#ifndef JOIN_DECIDED_H
#define JOIN_DECIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "join/holders.h"
#include "join/join.h"
#include "join/nameless.h"
#include "join/outcomes.h"
#include "join/resolve.h"
#include "join/wakers.h"

/* longest wait of a sample for its names: the agent may hardly get a CPU */
#define DECIDED_WAIT_NS (10ull * 1000 * 1000 * 1000)

struct owners;

struct decided_parts {
	struct profile *profile; /* not owned, like the three below it */
	struct symbols *symbols;
	struct owners *owners;
	const uint64_t *windows; /* number of windows written */
	/* Asks for what is missing. Returns false if the owner no longer answers. */
	bool (*ask)(void *context, void *owner, const struct duet_want *wants, size_t count);
	/* The join's handler. It calls decided_add(). */
	join_handler handler;
	void *context; /* first argument of both functions */
};

/* The name of the thread whose name was read last. A thread without a name in its samples has many of them. */
struct decided_comm {
	pid_t pid;
	uint32_t tid;
	uint64_t read_ns;
	char text[32];
};

struct decided {
	struct decided_parts of;
	bool has_bpf; /* BPF's samples have a cgroup, the agents' have none */
	struct join *join; /* owned; holds the samples that are not decided yet */
	struct nameless nameless;
	struct wakers wakers;
	bool tells_holders; /* waits for locks are shown with who held them */
	struct holders holders;
	uint64_t kernel_ns; /* the kernel's records until then have been read and decided */
	size_t max_bytes; /* bytes of all samples that wait; above, the oldest are added without their names */
	uint64_t now_ns; /* now_ns of decided_run(), while it runs */
	struct decided_comm comm;
	struct resolver resolver;
	struct outcomes outcomes;
};

int decided_open(struct decided *decided, const struct decided_parts *of); /* 0 or -ENOMEM; release it in any case */
void decided_release(struct decided *decided);
/* Limits the bytes of all samples that are not in the profile yet. */
void decided_set_max_bytes(struct decided *decided, size_t bytes);

/* Adds the sample, or holds a copy of it while names are missing that may still arrive. */
void decided_add(struct decided *decided, const struct decision *decision);
/* Calls join_run(), and adds the samples that have their names now, or have waited long enough. */
void decided_run(struct decided *decided, uint64_t now_ns);
/* Adds all samples of `owner` (of all owners if NULL). Called when no more answers will arrive from it. */
void decided_flush(struct decided *decided, void *owner);

/*
 * Returns the time of the oldest sample that is not in the profile yet, CLOCK_MONOTONIC; UINT64_MAX if there is none.
 */
uint64_t decided_oldest_ns(const struct decided *decided);
/* true if any half or sample of this owner waits */
bool decided_awaits(const struct decided *decided, const void *owner);
size_t decided_waiting(const struct decided *decided); /* number of samples that are not in the profile yet */

#endif
