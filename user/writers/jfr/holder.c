/* SPDX-License-Identifier: MIT */
#include "writers/jfr/holder.h"

#include "profile/profile.h"

static const struct frame *frame_of(const struct profile *profile, uint32_t node)
{
	return &profile->frames.items[profile->nodes.items[node].frame];
}

uint32_t jfr_waiter(const struct profile *profile, uint32_t node)
{
	for (uint32_t at = node; at; at = profile->nodes.items[at].parent)
		if (frame_of(profile, at)->kind == FRAME_WAKER)
			return profile->nodes.items[at].parent;
	return node;
}

uint32_t jfr_holder(const struct profile *profile, const struct profile_sample *sample)
{
	uint32_t pid = profile->threads.items[sample->thread].pid, name;

	if (!sample->node || jfr_waiter(profile, sample->node) == sample->node)
		return UINT32_MAX;
	name = frame_of(profile, sample->node)->name;
	for (uint32_t i = 0; i < profile->threads.len; i++)
		if (profile->threads.items[i].pid == pid && profile->threads.items[i].name == name)
			return i;
	return UINT32_MAX;
}
