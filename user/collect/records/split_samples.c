/* SPDX-License-Identifier: MIT */
#include "collect/records/split_samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "proc/room.h"

static void drop(struct deep_stacks *stacks, size_t index)
{
	vec_release(&stacks->pending.items[index].addresses);
	vec_release(&stacks->pending.items[index].ids);
	stacks->pending.items[index] = stacks->pending.items[--stacks->pending.len];
}

void deep_stacks_release(struct deep_stacks *stacks)
{
	while (stacks->pending.len)
		drop(stacks, 0);
	vec_release(&stacks->pending);
	free(stacks->whole);
	*stacks = (struct deep_stacks){0};
}

/* Returns the index of the thread's stack, or stacks.len. A thread has at most one: an older one is lost. */
static size_t find(const struct deep_stacks *stacks, uint32_t tid)
{
	size_t i = 0;

	while (i < stacks->pending.len && stacks->pending.items[i].tid != tid)
		i++;
	return i;
}

static void drop_oldest(struct deep_stacks *stacks)
{
	size_t oldest = 0;

	for (size_t i = 1; i < stacks->pending.len; i++)
		if (stacks->pending.items[i].time_ns < stacks->pending.items[oldest].time_ns)
			oldest = i;
	drop(stacks, oldest);
}

static struct deep_stack *begin(struct deep_stacks *stacks, const struct duet_record *head)
{
	struct deep_stack stack = {.tid = head->tid, .time_ns = head->time_ns};
	size_t index = find(stacks, head->tid);

	if (index < stacks->pending.len)
		drop(stacks, index);
	if (stacks->pending.len == DEEP_STACKS_MAX)
		drop_oldest(stacks);
	return vec_push(&stacks->pending, stack) < 0 ? NULL : &stacks->pending.items[stacks->pending.len - 1];
}

/* Returns the stack that these frames continue, or NULL when frames before them are missing. */
static struct deep_stack *continued(struct deep_stacks *stacks, const struct duet_frames_record *record)
{
	size_t index = find(stacks, record->head.tid);
	struct deep_stack *stack = index < stacks->pending.len ? &stacks->pending.items[index] : NULL;

	if (!stack || stack->time_ns != record->head.time_ns ||
	    stack->addresses.len != record->first - DUET_LEAF_FRAMES)
		return NULL;
	return stack;
}

void deep_stacks_add(struct deep_stacks *stacks, const struct duet_frames_record *record)
{
	struct deep_stack *stack =
		record->first == DUET_LEAF_FRAMES ? begin(stacks, &record->head) : continued(stacks, record);
	size_t len = stack ? stack->addresses.len : 0;

	if (!stack || vec_reserve(&stack->addresses, len + DUET_ROOT_FRAMES) < 0 ||
	    vec_reserve(&stack->ids, len + DUET_ROOT_FRAMES) < 0)
		return;
	memcpy(stack->addresses.items + len, record->stack, sizeof(record->stack));
	memcpy(stack->ids.items + len, record->ids, sizeof(record->ids));
	stack->addresses.len = stack->ids.len = len + DUET_ROOT_FRAMES;
}

static struct duet_sample *whole_room(struct deep_stacks *stacks, size_t bytes)
{
	struct duet_sample *grown = bytes > stacks->whole_bytes ? realloc(stacks->whole, bytes) : stacks->whole;

	if (!grown)
		return NULL;
	stacks->whole = grown;
	stacks->whole_bytes = bytes > stacks->whole_bytes ? bytes : stacks->whole_bytes;
	return grown;
}

/*
 * Copies the sample's DUET_MAX_USER_STACK items to `to` and inserts the `count` items of `middle` before the last
 * DUET_ROOT_FRAMES. Returns the end of the copy.
 */
static unsigned char *put(unsigned char *to, const void *sample, const void *middle, size_t count, size_t item_bytes)
{
	const unsigned char *from = sample;

	memcpy(to, from, DUET_LEAF_FRAMES * item_bytes);
	to += DUET_LEAF_FRAMES * item_bytes;
	memcpy(to, middle, count * item_bytes);
	to += count * item_bytes;
	memcpy(to, from + DUET_LEAF_FRAMES * item_bytes, DUET_ROOT_FRAMES * item_bytes);
	return to + DUET_ROOT_FRAMES * item_bytes;
}

static const struct duet_sample *put_together(struct deep_stacks *stacks, const struct duet_sample *sample,
					      const struct deep_stack *stack)
{
	const uint64_t *user = sample->stack + sample->kernel_depth;
	const size_t kernel_bytes = sizeof(*sample) + sample->kernel_depth * sizeof(uint64_t);
	const uint32_t depth = (uint32_t)sample->user_depth + sample->left_out;
	const uint32_t ids = sample->id_depth ? depth : 0;
	const size_t frames_end = kernel_bytes + depth * sizeof(uint64_t) + (ids + 1) / 2 * sizeof(uint64_t);
	const size_t bytes = frames_end + sample->attribute_bytes;
	struct duet_sample *whole = whole_room(stacks, bytes);
	unsigned char *to = (unsigned char *)whole;

	if (!whole)
		return sample;
	memcpy(whole, sample, kernel_bytes);
	to = put(to + kernel_bytes, user, stack->addresses.items, sample->left_out, sizeof(uint64_t));
	if (ids) {
		memset((unsigned char *)whole + frames_end - sizeof(uint64_t), 0, sizeof(uint64_t)); /* padding */
		put(to, user + sample->user_depth, stack->ids.items, sample->left_out, sizeof(uint32_t));
	}
	memcpy((unsigned char *)whole + frames_end,
	       (const unsigned char *)sample + sample->head.size - sample->attribute_bytes, sample->attribute_bytes);
	whole->head.size = (uint32_t)bytes;
	whole->user_depth = (uint16_t)depth;
	whole->id_depth = (uint16_t)ids;
	whole->left_out = 0;
	return whole;
}

const struct duet_sample *deep_stacks_join(struct deep_stacks *stacks, const struct duet_sample *sample)
{
	size_t index = sample->left_out ? find(stacks, sample->head.tid) : stacks->pending.len;
	const struct duet_sample *result = sample;
	const struct deep_stack *stack;

	if (index == stacks->pending.len)
		return sample;
	stack = &stacks->pending.items[index];
	if (stack->time_ns == sample->head.time_ns && stack->addresses.len >= sample->left_out)
		result = put_together(stacks, sample, stack);
	drop(stacks, index);
	return result;
}

struct early_kept {
	struct payer payer;
	uint32_t bytes; /* of the sample as it was kept */
	struct duet_sample sample;
};

/* Frees a sample that was kept, if there is one with this id. */
static void forget(struct early *early, uint64_t id)
{
	struct early_kept *kept = map_get_ptr(&early->by_id, id);

	if (!kept)
		return;
	map_remove(&early->by_id, id);
	room_give(ROOM_EARLY, &kept->payer, kept->bytes);
	free(kept);
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
		const struct early_kept *kept = (const void *)(uintptr_t)value;

		if (kept->sample.head.time_ns + EARLY_KEEP_NS < now_ns)
			(void)vec_push(&old, id); /* out of memory: the next time */
	}
	for (size_t i = 0; i < old.len; i++)
		forget(early, old.items[i]);
	vec_release(&old);
}

void early_add(struct early *early, const struct payer *payer, const struct duet_sample *sample)
{
	uint32_t bytes = sample->head.size;
	struct early_kept *kept;

	sweep(early, sample->head.time_ns);
	forget(early, sample->waker);
	room_set_size(ROOM_EARLY, EARLY_BYTES_MAX);
	if (!room_take(ROOM_EARLY, payer, bytes))
		return;
	kept = malloc(sizeof(*kept) - sizeof(kept->sample) + bytes);
	if (!kept || map_put_ptr(&early->by_id, sample->waker, kept) < 0) {
		room_give(ROOM_EARLY, payer, bytes);
		return free(kept);
	}
	kept->payer = *payer;
	kept->bytes = bytes;
	memcpy(&kept->sample, sample, bytes);
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
	struct early_kept *kept = map_get_ptr(&early->by_id, record->id);
	struct duet_sample *sample;

	if (!kept)
		return NULL;
	kept->sample.head.time_ns = record->head.time_ns;
	sample = join(&kept->sample, record);
	if (!record->is_kept)
		forget(early, record->id);
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
	map_release_owned(&early->by_id);
	free(early->taken);
	*early = (struct early){0};
}
