/* SPDX-License-Identifier: MIT */
#include "profile/thread_state.h"

#include <string.h>

static const struct frame *frame_of(const struct profile *profile, uint32_t node)
{
	return &profile->frames.items[profile->nodes.items[node].frame];
}

/* Returns the leaf of the stack that waited: what follows FRAME_WAKER is another's. */
static uint32_t sleeper_node(const struct profile *profile, uint32_t leaf)
{
	for (uint32_t node = leaf; node; node = profile->nodes.items[node].parent)
		if (frame_of(profile, node)->kind == FRAME_WAKER)
			return profile->nodes.items[node].parent;
	return leaf;
}

/* A thread that waits for a CPU is runnable. So is one that has a CPU: its stack has no state. */
static enum thread_state state_of_stack(const struct profile *profile, uint32_t leaf)
{
	uint32_t node = sleeper_node(profile, leaf);

	if (!node || frame_of(profile, node)->kind != FRAME_STATE ||
	    !strcmp(intern_text(&profile->strings, frame_of(profile, node)->name), "[runnable]"))
		return THREAD_RUNNABLE;
	return THREAD_SLEEPING;
}

enum thread_state thread_state_of(const struct profile *profile, const struct profile_sample *sample)
{
	static const char *const of_time[] = {"wall", "offcpu", "wakeup"};
	static const char *const of_cpu[] = {"cpu", "ctimer", "itimer", "cpu-clock", "task-clock", "cpu-time"};
	const char *event = intern_text(&profile->strings, profile->events.items[sample->event].name);

	for (size_t i = 0; i < sizeof(of_cpu) / sizeof(*of_cpu); i++)
		if (!strcmp(event, of_cpu[i]))
			return sample->address && sample->address < THREAD_STATES ? (enum thread_state)sample->address
										  : THREAD_DEFAULT;
	for (size_t i = 0; i < sizeof(of_time) / sizeof(*of_time); i++)
		if (!strcmp(event, of_time[i]))
			return sample->address && sample->address < THREAD_STATES
				       ? (enum thread_state)sample->address
				       : state_of_stack(profile, sample->node);
	return THREAD_STATE_UNKNOWN;
}
