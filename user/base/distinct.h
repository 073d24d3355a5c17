/* SPDX-License-Identifier: MIT */
/* Estimates how many different things were seen, to about 10 %, in 40 KB: it keeps hashes with enough zero bits. */
#pragma once

#include <stdint.h>

#include "base/map.h"

struct distinct {
	struct map hashes; /* the hashes seen whose lowest `shift` bits are 0 */
	unsigned shift;
};

void distinct_add(struct distinct *distinct, uint64_t hash); /* needs a well mixed hash: hash_u64(), hash_bytes() */
uint64_t distinct_count(const struct distinct *distinct);
void distinct_release(struct distinct *distinct); /* leaves it empty */
