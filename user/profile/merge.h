/* SPDX-License-Identifier: MIT */
/* Makes one profile of several, or one of a part of another. Times of all are of one clock, as from files. */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "base/buf.h"
#include "profile/profile.h"

/*
 * Adds all of `from` to `to`. Equal rows become one; events are the same when their names are. Losses are summed by
 * their texts. Facts that both have stay as they are, the others of `from` follow those of `to`, after a fact `source`
 * with the value `name`. The host stays that of `to`, unless it has none. Returns 0, or -errno with one sentence in
 * `why`; then `to` has a part of `from`.
 */
int profile_merge(struct profile *to, const struct profile *from, const char *name, struct buf *why);

/* Which samples: of this time, and of this event. */
struct profile_part {
	uint64_t from_ns, until_ns; /* not before, and before */
	uint32_t event; /* index into profile.events; UINT32_MAX for all */
};

/* Fills `to`, which is empty, with these samples of `from`, and with all that is known of the recording. As above. */
int profile_cut(struct profile *to, const struct profile *from, const struct profile_part *part, struct buf *why);

#endif
