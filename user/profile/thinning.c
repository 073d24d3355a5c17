/* SPDX-License-Identifier: MIT */
#include "profile/thinning.h"

#include <sys/random.h>

#define END_SHARE 16 /* 1/16 of the limit is kept for the end: losses and facts */

void thinning_open(struct thinning *thinning, uint64_t max_bytes)
{
	*thinning = (struct thinning){.max_bytes = max_bytes};
	/* Nobody should know which sample is kept. If it fails, the choice is still fair. */
	(void)!getrandom(&thinning->random, sizeof(thinning->random), GRND_NONBLOCK);
	thinning->random |= 1; /* the generator stays at 0 */
}

void thinning_step(struct thinning *thinning, uint64_t used_bytes)
{
	uint64_t half = (thinning->max_bytes - thinning->max_bytes / END_SHARE) / 2;
	uint64_t more = used_bytes > half ? used_bytes - half : 0;

	if (!thinning->max_bytes || !more)
		thinning->shift = 0;
	else if (more >= half)
		thinning->shift = THINNING_SHIFT_MAX + 1;
	else
		thinning->shift = 1 + (uint32_t)(more * THINNING_SHIFT_MAX / half);
}

/* xorshift64* (Vigna, 2016) */
static uint32_t next_random(struct thinning *thinning)
{
	thinning->random ^= thinning->random >> 12;
	thinning->random ^= thinning->random << 25;
	thinning->random ^= thinning->random >> 27;
	return (uint32_t)((thinning->random * 0x2545f4914f6cdd1dull) >> 32);
}

uint32_t thinning_take(struct thinning *thinning)
{
	uint32_t times = 1u << thinning->shift;

	if (!thinning->shift)
		return 1;
	if (thinning->shift > THINNING_SHIFT_MAX || next_random(thinning) % times)
		return 0;
	return times;
}
