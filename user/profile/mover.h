/* SPDX-License-Identifier: MIT */
/* Copies what samples use from one profile to another: their stacks, threads, owners and strings, each once. */
#ifndef PROFILE_MOVER_H
#define PROFILE_MOVER_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

/* Set the first three fields. The maps hold the indices that were copied: index in `from` -> in `to`. */
struct mover {
	const struct profile *from;
	struct profile *to;
	struct intern_move *strings; /* NULL: both have the same strings */
	struct map nodes, frames, threads, owners;
	struct vec(uint32_t) path;
};

void mover_release(struct mover *m);
/* Each returns what its argument, of `from`, is in `to`; UINT32_MAX, of strings 0, when out of memory. */
uint32_t mover_text(struct mover *m, uint32_t id);
uint32_t mover_node(struct mover *m, uint32_t leaf);
uint32_t mover_thread(struct mover *m, uint32_t index);

#endif
