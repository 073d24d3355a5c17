/* SPDX-License-Identifier: MIT */
#include "collect/records/early.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"

/* Takes the sample out of the map. Returns NULL if there is none; the caller frees it. */
static struct duet_sample *take_out(struct early *early, uint64_t id)
{
	struct duet_sample *sample = map_get_ptr(&early->by_id, id);

	if (!sample)
		return NULL;
	map_remove(&early->by_id, id);
	early->bytes -= sample->head.size;
	return sample;
}

static void sweep(struct early *early, uint64_t now_ns)
{
	struct vec(uint64_t) old = {0};
	uint64_t id, value;
	size_t cursor = 0;

	if (now_ns < early->swept_ns + EARLY_KEEP_NS)
		return;
	early->swept_ns = now_ns;
	while (map_next(&early->by_id, &cursor, &id, &value)) {
		const struct duet_sample *sample = (const void *)(uintptr_t)value;

		if (sample->head.time_ns + EARLY_KEEP_NS < now_ns)
			(void)vec_push(&old, id); /* out of memory: the next time */
	}
	for (size_t i = 0; i < old.len; i++)
		free(take_out(early, old.items[i]));
	vec_release(&old);
}

void early_add(struct early *early, const struct duet_sample *sample)
{
	struct duet_sample *copy;

	sweep(early, sample->head.time_ns);
	free(take_out(early, sample->waker));
	copy = early->bytes + sample->head.size <= EARLY_BYTES_MAX ? buf_duplicate(sample, sample->head.size) : NULL;
	if (!copy || map_put_ptr(&early->by_id, sample->waker, copy) < 0) {
		free(copy);
		return;
	}
	early->bytes += copy->head.size;
}

/* Returns a copy of the sample with the attributes of the record at its end, or NULL without memory. */
static struct duet_sample *join(const struct duet_sample *sample, const struct duet_slept_record *record)
{
	struct duet_sample *joined = malloc(sample->head.size + (size_t)record->attribute_bytes);

	if (!joined)
		return NULL;
	memcpy(joined, sample, sample->head.size);
	memcpy((char *)joined + sample->head.size, record + 1, record->attribute_bytes);
	joined->head.size += record->attribute_bytes;
	joined->attribute_bytes += record->attribute_bytes;
	return joined;
}

const struct duet_sample *early_take(struct early *early, const struct duet_slept_record *record)
{
	struct duet_sample *kept = map_get_ptr(&early->by_id, record->id), *sample;

	if (!kept)
		return NULL;
	kept->head.time_ns = record->head.time_ns;
	sample = join(kept, record);
	if (!record->is_kept)
		free(take_out(early, record->id));
	free(early->taken);
	early->taken = sample;
	if (!sample)
		return NULL;
	sample->role = DUET_ROLE_SAMPLE;
	sample->weight = record->weight;
	sample->runnable = record->runnable;
	sample->waker = record->waker;
	return sample;
}

void early_release(struct early *early)
{
	uint64_t id, value;
	size_t cursor = 0;

	while (map_next(&early->by_id, &cursor, &id, &value))
		free((void *)(uintptr_t)value);
	map_release(&early->by_id);
	free(early->taken);
	*early = (struct early){0};
}
