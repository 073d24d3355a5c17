/* SPDX-License-Identifier: MIT */
/*
 * All that waits on the way into the profile: halves of samples, in the join; records of wakers and of releases of
 * locks, until the samples that they belong to arrive; and decided samples whose waker, holders or names are missing.
 * A sample waits in the list of the one thing that it lacks, and is looked at again when that has arrived.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/vec.h"
#include "join/holders.h"
#include "join/join.h"
#include "join/sink.h"

/* longest wait of a sample for its names: the agent may hardly get a CPU */
#define PENDING_WAIT_NS (10ull * 1000 * 1000 * 1000)

#define WAKERS_WAIT_NS (2ull * 1000 * 1000 * 1000) /* longest wait of a sleep's sample for the record of its waker */
#define WAKERS_KEEP_NS (12ull * 1000 * 1000 * 1000) /* longest time that such a record is held */

/* Records of the wakers of sleeping threads (enum duet_role), held until the sample of the sleep arrives. */
struct wakers {
	struct map by_id; /* duet_sample.waker -> struct held, owned */
	uint64_t swept_ns; /* when records that no sample needed were removed last */
};

struct pending_sample;
struct pending_origin;
TAILQ_HEAD(pending_samples, pending_sample);

struct pending_deps {
	struct sink_deps sink;
	/* Requests what is missing. Returns false if the origin no longer answers. */
	bool (*ask)(void *context, struct origin *origin, const struct duet_want *wants, size_t count);
	/* The join's handler. It calls pending_add(). */
	join_handler handler;
	void *context; /* first argument of both functions */
};

struct pending {
	struct pending_deps of;
	struct sink sink;
	struct join *join; /* owned; the halves */
	struct wakers wakers;
	struct holders holders;
	struct pending_samples samples; /* the decided ones, oldest first */
	struct pending_samples unwoken; /* of these, those that lack the waker's record, oldest first, … */
	struct map unwoken_ids; /* … by duet_sample.waker */
	struct pending_samples unread; /* those that lack records of the kernel of their time */
	struct map names; /* hash of origin and request -> struct pending_name, for those that lack a name */
	struct vec(struct pending_origin *) origins; /* of these names */
	size_t count; /* samples in `samples` */
	size_t bytes; /* of these */
	size_t max_bytes; /* of all samples that wait; above, the oldest are added without their names */
	uint64_t kernel_ns; /* the kernel's records until then have been read and decided */
};

int pending_open(struct pending *pending, const struct pending_deps *of); /* 0 or -ENOMEM; release it in any case */
void pending_release(struct pending *pending); /* drops all that waits, and its references */
/* Limits the bytes of all samples that are not in the profile yet. */
void pending_set_max_bytes(struct pending *pending, size_t bytes);

/* Takes a decided record: adds it to the profile, or holds a copy while something is missing that may still arrive. */
void pending_add(struct pending *pending, const struct decision *decision);
/* Calls join_run(), and adds the samples that lack nothing any more, or have waited long enough. */
void pending_run(struct pending *pending, uint64_t now_ns);
/* Adds the samples of the process (NULL: of all) as they are. Call before an exec: mappings change then. */
void pending_flush(struct pending *pending, const struct process *process);

/* Returns the time of the oldest sample that is not in the profile yet, CLOCK_MONOTONIC; UINT64_MAX: none. */
uint64_t pending_oldest_ns(const struct pending *pending);
bool pending_has_dead(const struct pending *pending); /* true if decided samples of an ended process wait */
size_t pending_count(const struct pending *pending); /* number of samples that are not in the profile yet */
