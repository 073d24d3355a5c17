/* SPDX-License-Identifier: MIT */
/* Begins the next window. Only the frames, stacks and threads of the samples in `later` are kept. */
#ifndef PROFILE_EXCHANGE_H
#define PROFILE_EXCHANGE_H

#include "profile/profile.h"

/*
 * Ends the window: `profile` becomes the next one, which ends at `until_ns`, with the samples of `later`. Returns the
 * number of samples that were lost for want of memory, or because they could not be read back.
 *
 * Indices of frames, stacks, threads and owners become invalid; those of events stay. Ids of strings stay valid unless
 * `move` is given: then the strings in use are copied to *move->to, which the profile owns from now on, and move->to
 * points into the profile. The caller releases move->from.
 */
uint64_t profile_exchange(struct profile *profile, uint64_t until_ns, struct intern_move *move);

#endif
