/* SPDX-License-Identifier: MIT */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define NONE UINT32_MAX

static const struct stack_node root_node = {.parent = 0, .frame = NONE};

int profile_init(struct profile *profile)
{
	int err;

	memset(profile, 0, sizeof(*profile));
	profile->event = "cpu";
	timeline_init(&profile->samples);
	err = intern_init(&profile->strings);
	if (err < 0)
		return err;
	err = vec_push(&profile->nodes, root_node);
	if (err < 0)
		intern_release(&profile->strings);
	return err;
}

void profile_release(struct profile *profile)
{
	if (!profile)
		return;
	intern_release(&profile->strings);
	vec_release(&profile->frames);
	vec_release(&profile->nodes);
	vec_release(&profile->threads);
	timeline_release(&profile->samples);
	vec_release(&profile->losses);
	vec_release(&profile->facts);
	map_release(&profile->frame_ids);
	map_release(&profile->node_ids);
	map_release(&profile->thread_ids);
}

/* struct frame is seven 32-bit fields: no padding to hash or to compare. */
_Static_assert(sizeof(struct frame) == 28, "padding in struct frame");

uint32_t profile_frame(struct profile *profile, const struct frame *frame)
{
	uint64_t key = hash_bytes(frame, sizeof(*frame), 0);
	uint32_t index = (uint32_t)profile->frames.len;
	uint64_t known;

	/* Frames whose hashes are equal take the next free keys. */
	for (; map_get(&profile->frame_ids, key, &known); key++)
		if (memcmp(&profile->frames.items[known], frame, sizeof(*frame)) == 0)
			return (uint32_t)known;
	if (index == NONE || vec_push(&profile->frames, *frame) < 0)
		return NONE;
	if (map_put(&profile->frame_ids, key, index) < 0) {
		profile->frames.len--;
		return NONE;
	}
	return index;
}

/* The child of `parent` for `frame`, added when new. */
static uint32_t node_child(struct profile *profile, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t index = (uint32_t)profile->nodes.len;
	uint64_t known;

	if (map_get(&profile->node_ids, key, &known))
		return (uint32_t)known;
	if (index == NONE || vec_push(&profile->nodes, (struct stack_node){.parent = parent, .frame = frame}) < 0)
		return NONE;
	if (map_put(&profile->node_ids, key, index) < 0) {
		profile->nodes.len--;
		return NONE;
	}
	return index;
}

uint32_t profile_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name, const char *process)
{
	struct profile_thread thread = {
		.pid = pid,
		.tid = tid,
		.name = intern_str(&profile->strings, name ? name : ""),
		.process = intern_str(&profile->strings, process ? process : ""),
	};
	uint64_t key = (uint64_t)pid << 32 | tid;
	uint32_t index = (uint32_t)profile->threads.len;
	uint64_t known;

	if (map_get(&profile->thread_ids, key, &known) &&
	    memcmp(&profile->threads.items[known], &thread, sizeof(thread)) == 0)
		return (uint32_t)known;
	if (index == NONE || vec_push(&profile->threads, thread) < 0)
		return NONE;
	if (map_put(&profile->thread_ids, key, index) < 0) {
		profile->threads.len--;
		return NONE;
	}
	return index;
}

void profile_thread_rename(struct profile *profile, uint32_t thread, const char *name)
{
	if (thread < profile->threads.len)
		profile->threads.items[thread].name = intern_str(&profile->strings, name);
}

uint32_t profile_stack(struct profile *profile, const uint32_t *frames, uint32_t depth)
{
	uint32_t node = 0;

	for (uint32_t i = 0; i < depth && node != NONE; i++)
		node = frames[i] < profile->frames.len ? node_child(profile, node, frames[i]) : NONE;
	return node;
}

int profile_add(struct profile *profile, uint32_t node, uint32_t thread, uint64_t time_ns, uint64_t weight_ns)
{
	const struct profile_sample sample = {
		.time_ns = time_ns,
		.weight_ns = weight_ns,
		.thread = thread,
		.node = node,
	};

	if (thread >= profile->threads.len || node >= profile->nodes.len)
		return -ENOMEM;
	return timeline_add(&profile->samples, &sample);
}

void profile_add_loss(struct profile *profile, uint64_t count, const char *text)
{
	struct profile_loss loss = {.count = count, .text = intern_str(&profile->strings, text)};

	if (count)
		(void)vec_push(&profile->losses, loss);
}

void profile_add_fact(struct profile *profile, const char *key, const char *format, ...)
{
	struct buf value;
	va_list args;

	buf_init(&value);
	va_start(args, format);
	buf_vprintf(&value, format, args);
	va_end(args);
	(void)vec_push(&profile->facts, (struct profile_fact){
						.key = intern_str(&profile->strings, key),
						.value = intern_str(&profile->strings, value.data),
					});
	buf_release(&value);
}
