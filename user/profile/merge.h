/* SPDX-License-Identifier: MIT */
/*
 * Merges profiles, copies a part of one, and begins the next window with one. The times of those that are merged must
 * be of one clock, as they are if read from files.
 */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"

/*
 * Adds the contents of `from` to `to`. Equal rows become one. Events with equal names are one event; its interval is 0
 * if theirs differ. Losses with equal texts are summed. Appends a fact "source" with the value `name`, then the facts
 * of `from` that `to` does not have. The host is copied only if `to` has none. Returns 0, or -errno with one sentence
 * in `why`; then `to` contains a part of `from`.
 */
int profile_merge(struct profile *to, const struct profile *from, const char *name, struct buf *why);

/* Selects samples by time and event. */
struct profile_part {
	uint64_t from_ns, until_ns; /* the first time, and the first time after the last */
	uint32_t event; /* index into profile.events; UINT32_MAX for all */
	uint32_t also; /* an event of the same unit, whose samples become samples of `event`; UINT32_MAX for none */
	/* only the samples of `event` whose memory no sample of `freed`, whatever its time, has freed */
	bool is_unfreed;
	uint32_t freed; /* UINT32_MAX for none */
	const struct intervals *within; /* only samples within these (intervals.h); NULL: all */
	uint32_t states; /* only samples of these states, 1 << enum thread_state; 0: all */
	/*
	 * NULL, or called for each sample that is selected by the fields above: returns false to leave it out, and may
	 * change the node, of `to`, that it gets.
	 */
	bool (*place)(void *context, struct profile *to, const struct profile_sample *from, uint32_t *node);
	void *context;
};

/* Fills the empty profile `to` with the selected samples of `from`, its host, losses and facts. Returns as above. */
int profile_cut(struct profile *to, const struct profile *from, const struct profile_part *part, struct buf *why);

/*
 * Ends the window: `profile` becomes the next one, which ends at `until_ns`, with the samples of `later`. Only their
 * frames, stacks and threads are kept; all are, while most samples are of windows after the next. Returns the number of
 * samples that were lost for want of memory, or because they could not be read back.
 *
 * Indices of frames, stacks, threads and owners become invalid; those of events stay. Ids of strings stay valid unless
 * `move` is given: then the strings in use are copied to *move->to, which the profile owns from now on, and move->to
 * points into the profile. The caller releases move->from.
 */
uint64_t profile_exchange(struct profile *profile, uint64_t until_ns, struct intern_move *move);
