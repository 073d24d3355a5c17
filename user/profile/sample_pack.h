/* SPDX-License-Identifier: MIT */
/* Samples in few bytes, each as what differs from the one before: most share their event, weight and thread. */
#ifndef PROFILE_SAMPLE_PACK_H
#define PROFILE_SAMPLE_PACK_H

#include <stddef.h>

#include "profile/timeline.h"

#define SAMPLE_PACK_BYTES 128 /* no sample takes more */

/* The first sample comes after one of zeros. Returns how many bytes of `to`, which has SAMPLE_PACK_BYTES, are used. */
size_t sample_pack(unsigned char *to, const struct profile_sample *before, const struct profile_sample *sample);

/*
 * Makes the sample of the one before, in place. Returns how many bytes it took, which may be of no sample if they were
 * not packed. SAMPLE_PACK_BYTES of `from` are readable.
 */
size_t sample_unpack(const unsigned char *from, struct profile_sample *sample);

#endif
