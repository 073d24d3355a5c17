/* SPDX-License-Identifier: MIT */
/* Finds the memory that was taken and never freed, by the addresses of both. */
#ifndef PROFILE_UNFREED_H
#define PROFILE_UNFREED_H

#include "base/map.h"
#include "profile/profile.h"

/* The latest event of an address. */
struct unfreed_use {
	uint64_t time_ns, sample; /* the sample's number in the timeline */
};

/* A zeroed struct with the two events set is valid and empty. */
struct unfreed {
	uint32_t taken, freed; /* events of the profile; `freed` is UINT32_MAX if nothing was freed */
	const struct profile *profile; /* not owned */
	struct map last; /* process and address -> index in `latest` */
	struct vec(struct unfreed_use) latest;
	uint64_t found; /* samples that were looked at */
	uint64_t asked; /* samples that unfreed_next() was called for */
	uint64_t unknown; /* samples of `taken` whose address is not known */
};

/* Looks at all samples of the profile. Returns 0 or -errno. */
int unfreed_find(struct unfreed *unfreed, const struct profile *profile);
void unfreed_release(struct unfreed *unfreed);
/*
 * Called once for each sample, in the order of timeline_each(). Returns true if the sample took memory that was not
 * freed, nor taken again at its address, until the end of the recording.
 */
bool unfreed_next(struct unfreed *unfreed, const struct profile_sample *sample);

#endif
