/* SPDX-License-Identifier: MIT */
#include "collect/records/thinned.h"

#include <stdlib.h>
#include <string.h>

#include "base/counters.h"

/* xorshift64: the order of samples is not known to who would choose the result. */
static uint64_t next_random(struct thinned *thinned)
{
	uint64_t x = thinned->random ? thinned->random : hash_bytes("", 0, 0) | 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return thinned->random = x;
}

static void free_sleep(struct thinned_sleep *sleep)
{
	if (sleep)
		process_unref(sleep->process);
	free(sleep);
}

static struct thinned_sleep *copy_of(struct process *process, const struct duet_sample *sample)
{
	struct thinned_sleep *sleep = malloc(offsetof(struct thinned_sleep, sample) + sample->head.size);

	if (!sleep)
		return NULL;
	sleep->process = process_ref(process);
	memcpy(&sleep->sample, sample, sample->head.size);
	return sleep;
}

/* Returns what stands for both now: each of them with a probability in proportion to its weight. */
static struct thinned_sleep *add(struct thinned *thinned, struct thinned_sleep *kept, struct process *process,
				 const struct duet_sample *sample)
{
	uint64_t weight = (kept ? kept->weight : 0) + sample->weight;
	struct thinned_sleep *other = NULL;

	if (!kept || next_random(thinned) % weight < sample->weight)
		other = copy_of(process, sample);
	if (other)
		free_sleep(kept);
	else
		other = kept;
	if (other)
		other->weight = weight;
	return other;
}

/* Of its weight, the same part as of its own is that of a wait for a CPU. */
static const struct duet_sample *take(struct thinned *thinned, struct thinned_sleep *sleep,
				      struct process **ret_process)
{
	struct duet_sample *sample = &sleep->sample;
	double growth = (double)sleep->weight / (double)sample->weight;

	free_sleep(thinned->taken);
	thinned->taken = sleep;
	sample->runnable = (uint64_t)((double)sample->runnable * growth);
	sample->weight = sleep->weight;
	if (sample->runnable > sample->weight)
		sample->runnable = sample->weight;
	*ret_process = sleep->process;
	return sample;
}

const struct duet_sample *thinned_take(struct thinned *thinned, struct process **process,
				       const struct duet_sample *sample, bool is_covered)
{
	const uint64_t identity[] = {(*process)->payer.key, sample->event};
	uint64_t key = hash_bytes(identity, sizeof(identity), 0);
	struct thinned_sleep *kept = map_get_ptr(&thinned->kept, key);

	if (!sample->weight || (!kept && (is_covered || thinned->kept.len >= THINNED_MAX)))
		return sample;
	kept = add(thinned, kept, *process, sample);
	if (!kept)
		return sample;
	if (is_covered) {
		map_remove(&thinned->kept, key);
		return take(thinned, kept, process);
	}
	loader_counters[DUET_LOADER_SLEEPS_THINNED]++;
	if (map_put_ptr(&thinned->kept, key, kept) < 0)
		return take(thinned, kept, process);
	return NULL;
}

const struct duet_sample *thinned_next(struct thinned *thinned, struct process **ret_process)
{
	uint64_t key, value;
	size_t cursor = 0;

	if (!map_next(&thinned->kept, &cursor, &key, &value))
		return NULL;
	map_remove(&thinned->kept, key);
	return take(thinned, (void *)(uintptr_t)value, ret_process);
}

void thinned_release(struct thinned *thinned)
{
	struct process *process;

	while (thinned_next(thinned, &process))
		;
	free_sleep(thinned->taken);
	*thinned = (struct thinned){0};
}
