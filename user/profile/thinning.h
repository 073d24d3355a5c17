/* SPDX-License-Identifier: MIT */
/*
 * Keeps a recording within a limit of bytes. When half of the limit is used, one of two samples is kept, chosen at
 * random, with twice its weight. After each further 1/32 of the limit the sampling rate halves and the weight of a kept
 * sample doubles. So sums stay right, what was recorded stays as it is, and there is room for thousands of times the
 * limit.
 */
#pragma once

#include <stdint.h>

#define THINNING_SHIFT_MAX 16 /* then nothing more is kept */

/* All 0: no limit. */
struct thinning {
	uint64_t max_bytes;
	uint64_t random; /* state of the generator */
	uint32_t shift; /* one of 2^shift samples is kept; above THINNING_SHIFT_MAX: none */
};

void thinning_open(struct thinning *thinning, uint64_t max_bytes); /* 0: no limit */
/* Call some times a second, with the bytes that are used. A part of the limit is kept for the end of the file. */
void thinning_step(struct thinning *thinning, uint64_t used_bytes);
/* Decides about one sample. Returns how many it stands for; 0: it is left out. */
uint32_t thinning_take(struct thinning *thinning);
