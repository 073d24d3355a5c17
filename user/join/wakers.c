/* SPDX-License-Identifier: MIT */
#include "join/wakers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "join/states.h"

#define BYTES_MAX (64u << 20)
#define DEVICE_BYTES 64
#define DEPTH_MAX 65536 /* limit of splice_stack() */
#define DEVICES_BYTES 256 /* bytes of the names of the devices of an interrupt */

void wakers_release(struct wakers *wakers)
{
	uint64_t id, value;
	size_t cursor = 0;

	while (map_next(&wakers->by_id, &cursor, &id, &value))
		held_free((void *)(uintptr_t)value);
	map_release(&wakers->by_id);
	wakers->bytes = 0;
}

void wakers_add(struct wakers *wakers, const struct decision *decision, uint64_t now_ns)
{
	struct decision waker = *decision;
	struct held *held;

	waker.java = NULL;
	wakers_remove(wakers, waker.sample->waker);
	held = wakers->bytes + waker.sample->head.size <= BYTES_MAX ? held_new(&waker, now_ns) : NULL;
	if (!held || map_put_ptr(&wakers->by_id, waker.sample->waker, held) < 0)
		return held_free(held); /* counted when the sleeper's sample looks for it */
	wakers->bytes += held->bytes;
}

const struct decision *wakers_find(const struct wakers *wakers, uint64_t id)
{
	const struct held *held = map_get_ptr(&wakers->by_id, id);

	return held && held_is_current(held) ? &held->decision : NULL;
}

void wakers_remove(struct wakers *wakers, uint64_t id)
{
	struct held *held = map_get_ptr(&wakers->by_id, id);

	if (!held)
		return;
	map_remove(&wakers->by_id, id);
	wakers->bytes -= held->bytes;
	held_free(held);
}

void wakers_sweep(struct wakers *wakers, uint64_t now_ns)
{
	uint64_t id, value;
	size_t cursor = 0;

	if (now_ns < wakers->swept_ns + WAKERS_WAIT_NS)
		return;
	wakers->swept_ns = now_ns;
	while (map_next(&wakers->by_id, &cursor, &id, &value))
		if (((const struct held *)(uintptr_t)value)->since_ns < now_ns - WAKERS_KEEP_NS)
			wakers_remove(wakers, id);
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

/* A device has the names that its drivers gave, "eth0" or "ata1,ata2"; its number if there are none. */
static void name_interrupt(const struct duet_sample *sample, enum interrupt kind, char *ret, size_t room)
{
	static const char *const names[] = {
		[INTERRUPT_OTHER] = "[interrupt]",
		[INTERRUPT_TIMER] = "[timer]",
		[INTERRUPT_SOFT] = "[softirq]",
	};
	char path[64];
	int len = 0;
	BUF(text);

	if (kind != INTERRUPT_DEVICE) {
		snprintf(ret, room, "%s", names[kind]);
		return;
	}
	snprintf(path, sizeof(path), "/sys/kernel/irq/%u/actions", sample->irq); /* Linux 4.9 */
	if (!io_read_file(AT_FDCWD, path, DEVICES_BYTES, &text))
		len = (int)strcspn(text.data, "\n");
	if (len)
		snprintf(ret, room, "[irq: %.*s]", len < DEVICE_BYTES ? len : DEVICE_BYTES - 1, text.data);
	else
		snprintf(ret, room, "[irq: %u]", sample->irq);
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
