/* SPDX-License-Identifier: MIT */
/* One window of a profile after the other: frames, stacks and threads are kept only for the samples that follow. */
#ifndef PROFILE_EXCHANGE_H
#define PROFILE_EXCHANGE_H

#include "profile/profile.h"

/*
 * Ends the window: `profile` becomes the next one, until `until_ns`, with the samples of `later` that lie in it.
 * Indices of frames, stacks, threads and owners are others then; ids of strings only with `move`, whose `to` becomes
 * the profile's table (the caller releases `from`). The number of samples for which there was no memory.
 */
uint64_t profile_exchange(struct profile *profile, uint64_t until_ns, struct intern_move *move);

#endif
