/* SPDX-License-Identifier: MIT */
/* Copies the rows that samples use from one profile to another: stacks, threads, owners and strings, each once. */
#ifndef PROFILE_MOVER_H
#define PROFILE_MOVER_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

/* The caller sets the first three fields. The maps hold what was copied: index in `from` -> index in `to`. */
struct mover {
	const struct profile *from;
	struct profile *to;
	struct intern_move *strings; /* NULL: both profiles share their strings */
	struct map nodes, frames, threads, owners;
	struct vec(uint32_t) path;
};

void mover_release(struct mover *m);
/* Each returns the index in `to` of a row of `from`, copied if needed; UINT32_MAX (text: 0) when out of memory. */
uint32_t mover_text(struct mover *m, uint32_t id);
uint32_t mover_node(struct mover *m, uint32_t leaf);
uint32_t mover_thread(struct mover *m, uint32_t index);

#endif
