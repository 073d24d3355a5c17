/* SPDX-License-Identifier: MIT */
/* How many different things were seen, give or take a tenth, in 40 KB: by an evenly drawn part of their hashes. */
#ifndef BASE_DISTINCT_H
#define BASE_DISTINCT_H

#include <stdint.h>

#include "base/map.h"

struct distinct {
	struct map hashes; /* those whose lowest `shift` bits are 0 */
	unsigned shift;
};

void distinct_add(struct distinct *distinct, uint64_t hash); /* a good one: hash_u64(), hash_bytes() */
uint64_t distinct_count(const struct distinct *distinct);
void distinct_release(struct distinct *distinct); /* empty again */

#endif
