/* SPDX-License-Identifier: MIT */
#include "join/wakers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/counters.h"
#include "join/states.h"
#include "proc/interrupts.h"

#define BYTES_MAX (64u << 20)
#define DEVICE_BYTES 64
#define DEPTH_MAX 65536 /* limit of splice_stack() */

struct waker {
	struct decision decision; /* its sample is owned */
	uint64_t since_ns;
};

/* ---- held ---- */

static void free_waker(struct waker *waker)
{
	free((void *)waker->decision.sample);
	free(waker);
}

void wakers_release(struct wakers *wakers)
{
	uint64_t id, value;
	size_t cursor = 0;

	while (map_next(&wakers->by_id, &cursor, &id, &value))
		free_waker((void *)(uintptr_t)value);
	map_release(&wakers->by_id);
	wakers->bytes = 0;
}

void wakers_add(struct wakers *wakers, const struct decision *decision, uint64_t now_ns)
{
	const struct duet_sample *sample = decision->sample;
	struct waker *waker = wakers->bytes + sample->head.size <= BYTES_MAX ? calloc(1, sizeof(*waker)) : NULL;

	wakers_remove(wakers, sample->waker);
	if (waker) {
		*waker = (struct waker){*decision, now_ns};
		waker->decision.java = NULL;
		waker->decision.sample = buf_duplicate(sample, sample->head.size);
	}
	if (!waker || !waker->decision.sample || map_put_ptr(&wakers->by_id, sample->waker, waker) < 0) {
		if (waker)
			free_waker(waker);
		return; /* counted when the sleeper's sample looks for it */
	}
	wakers->bytes += sample->head.size;
}

const struct decision *wakers_find(const struct wakers *wakers, uint64_t id)
{
	const struct waker *waker = map_get_ptr(&wakers->by_id, id);

	return waker ? &waker->decision : NULL;
}

void wakers_remove(struct wakers *wakers, uint64_t id)
{
	struct waker *waker = map_get_ptr(&wakers->by_id, id);

	if (!waker)
		return;
	map_remove(&wakers->by_id, id);
	wakers->bytes -= waker->decision.sample->head.size;
	free_waker(waker);
}

/* Removes records from before `since_ns`, and those of the owner unless it is NULL. */
static void remove_some(struct wakers *wakers, uint64_t since_ns, const void *owner)
{
	struct vec(uint64_t) ids = {0};
	uint64_t id, value;
	size_t cursor = 0;

	while (map_next(&wakers->by_id, &cursor, &id, &value)) {
		const struct waker *waker = (const void *)(uintptr_t)value;

		if (waker->since_ns < since_ns || (owner && waker->decision.owner == owner))
			(void)vec_push(&ids, id); /* out of memory: removed the next time */
	}
	for (size_t i = 0; i < ids.len; i++)
		wakers_remove(wakers, ids.items[i]);
	vec_release(&ids);
}

void wakers_sweep(struct wakers *wakers, uint64_t now_ns)
{
	if (now_ns < wakers->swept_ns + WAKERS_WAIT_NS)
		return;
	wakers->swept_ns = now_ns;
	remove_some(wakers, now_ns - WAKERS_KEEP_NS, NULL);
}

void wakers_forget(struct wakers *wakers, const void *owner)
{
	remove_some(wakers, 0, owner);
}

/* ---- one stack made of two ---- */

static uint32_t push(struct profile *profile, uint32_t node, enum frame_kind kind, const char *text)
{
	const struct frame frame = {.kind = kind, .bci = -1, .name = intern_str(&profile->strings, text)};
	uint32_t row = profile_frame(profile, &frame);

	return row == UINT32_MAX || node == UINT32_MAX ? UINT32_MAX : profile_child(profile, node, row);
}

/* Copies the frames of a stack, leaf first. Returns NULL when out of memory; the caller frees it. */
static uint32_t *stack_frames(const struct profile *profile, uint32_t node, size_t *ret_count)
{
	size_t count = 0;
	uint32_t *frames;

	for (uint32_t at = node; at && count < DEPTH_MAX; at = profile->nodes.items[at].parent)
		count++;
	frames = calloc(count + 1, sizeof(*frames));
	*ret_count = count;
	for (size_t i = 0; frames && i < count; i++, node = profile->nodes.items[node].parent)
		frames[i] = profile->nodes.items[node].frame;
	return frames;
}

static void name_interrupt(const struct duet_sample *sample, enum interrupt kind, char *ret, size_t room)
{
	static const char *const names[] = {
		[INTERRUPT_OTHER] = "[interrupt]",
		[INTERRUPT_TIMER] = "[timer]",
		[INTERRUPT_SOFT] = "[softirq]",
	};
	char device[DEVICE_BYTES];

	if (kind != INTERRUPT_DEVICE) {
		snprintf(ret, room, "%s", names[kind]);
		return;
	}
	interrupt_name(sample->irq, device, sizeof(device));
	snprintf(ret, room, "[irq: %s]", device);
}

uint32_t wakers_append_name(struct profile *profile, uint32_t node, const char *who)
{
	return push(profile, push(profile, node, FRAME_WAKER, HOLDERS_SEPARATOR), FRAME_THREAD, who);
}

bool wakers_is_interrupt(const struct profile *profile, uint32_t waker)
{
	size_t count;
	uint32_t *frames = stack_frames(profile, waker, &count);
	bool is_interrupt = frames && state_interrupt(profile, frames, &count) != INTERRUPT_NONE;

	free(frames);
	return is_interrupt;
}

uint32_t wakers_append(struct profile *profile, uint32_t node, uint32_t waker, const struct duet_sample *sample,
		       const char *who)
{
	char interrupt[DEVICE_BYTES + 16];
	enum interrupt kind;
	size_t count, whole, first;
	uint32_t *frames = stack_frames(profile, waker, &count);

	if (!frames)
		return UINT32_MAX;
	whole = count;
	first = state_skip_waking(profile, frames, count);
	kind = state_interrupt(profile, frames, &count);
	if (kind == INTERRUPT_SOFT && sample->flags & DUET_SAMPLE_OWN_SOFTIRQ) {
		kind = INTERRUPT_NONE;
		count = whole;
	}
	if (kind == INTERRUPT_NONE && sample->role == DUET_ROLE_INTERRUPT) {
		kind = INTERRUPT_OTHER; /* the frames have no names: they could be those of the interrupted thread */
		count = 0;
	}
	if (kind != INTERRUPT_NONE) {
		name_interrupt(sample, kind, interrupt, sizeof(interrupt));
		if (kind == INTERRUPT_TIMER)
			first = count; /* the frames of how the kernel runs a timer are left out */
		who = interrupt;
	}
	node = push(profile, node, FRAME_WAKER,
		    sample->role == DUET_ROLE_HOLDER ? HOLDERS_SEPARATOR : WAKERS_SEPARATOR);
	for (size_t i = first; i < count && node != UINT32_MAX; i++)
		node = profile_child(profile, node, frames[i]);
	free(frames);
	return push(profile, node, FRAME_THREAD, who);
}
