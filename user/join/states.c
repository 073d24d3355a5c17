/* SPDX-License-Identifier: MIT */
#include "join/states.h"

#include <stdbool.h>
#include <string.h>

#include "duet_record.h"

#define TRACING_FRAMES 8 /* most frames of the tracing; Linux 6.18 has three */

/* Beginnings of the names of kernel functions. Linux 5.10 to 7.2 have them, some under only one of these names. */
static const struct {
	const char *function, *state;
} states[] = {
	{"futex_", "[futex]"},
	{"do_futex", "[futex]"},
	{"ep_poll", "[epoll]"},
	{"do_epoll_wait", "[epoll]"},
	{"poll_schedule_timeout", "[poll]"},
	{"do_sys_poll", "[poll]"},
	{"do_select", "[poll]"},
	{"do_nanosleep", "[sleep]"},
	{"hrtimer_nanosleep", "[sleep]"},
	{"alarm_timer_nsleep", "[sleep]"},
	{"pipe_", "[pipe]"},
	{"anon_pipe_", "[pipe]"},
	{"fifo_", "[pipe]"},
	{"sk_wait_data", "[socket]"},
	{"sk_stream_wait", "[socket]"},
	{"inet_csk_accept", "[socket]"},
	{"inet_csk_wait_for_connect", "[socket]"},
	{"inet_wait_for_connect", "[socket]"},
	{"inet_stream_connect", "[socket]"},
	{"unix_stream_", "[socket]"},
	{"unix_wait_for_peer", "[socket]"},
	{"__skb_wait_for_more_packets", "[socket]"},
	{"tcp_", "[socket]"},
	{"vsock_", "[socket]"},
	{"do_wait", "[child]"},
	{"__do_wait", "[child]"},
	{"kernel_wait4", "[child]"},
	{"do_sigtimedwait", "[signal]"},
	{"sigsuspend", "[signal]"},
	{"do_signal_stop", "[stopped]"},
	{"ptrace_stop", "[stopped]"},
	{"do_freezer_trap", "[stopped]"},
	{"io_cqring_wait", "[io]"},
	{"io_schedule", "[io]"},
	{"jbd2_log_wait_commit", "[io]"},
	{"read_events", "[io]"},
	{"request_wait_answer", "[io]"},
	{"rpc_wait_bit_killable", "[io]"},
	{"submit_bio_wait", "[io]"},
	{"n_tty_read", "[terminal]"},
	{"__mutex_lock", "[kernel lock]"},
	{"__down", "[kernel lock]"},
	{"rwsem_", "[kernel lock]"},
};

/*
 * Beginnings of the names of functions of the scheduler, which do not show the cause of a wait. The kernel leaves them
 * out of the stacks of threads that sleep, but not of a thread's own stack.
 */
static const char *const scheduler[] = {"__schedule", "schedule", "preempt_schedule", "do_nanosleep"};

/* Returns the name of a kernel function, or NULL if the frame is not one. */
static const char *kernel_function(const struct profile *profile, uint32_t frame)
{
	const struct frame *row = frame < profile->frames.len ? &profile->frames.items[frame] : NULL;

	return row && row->kind == FRAME_KERNEL ? intern_text(&profile->strings, row->name) : NULL;
}

/* Returns the number of frames without those of the tracing, which __schedule() has called. */
static size_t trim_tracing(const struct profile *profile, const uint32_t *frames, size_t count)
{
	size_t least = count > TRACING_FRAMES ? count - TRACING_FRAMES : 0;

	for (size_t end = count; end > least; end--) {
		const char *function = kernel_function(profile, frames[end - 1]);

		if (!function)
			break;
		if (!strcmp(function, "__schedule"))
			return end;
	}
	return count;
}

static bool is_scheduler(const char *function)
{
	for (size_t i = 0; i < sizeof(scheduler) / sizeof(*scheduler); i++)
		if (!strncmp(function, scheduler[i], strlen(scheduler[i])))
			return true;
	return false;
}

size_t state_trim(const struct profile *profile, const uint32_t *frames, size_t count)
{
	const char *function;

	count = trim_tracing(profile, frames, count);
	while (count && (function = kernel_function(profile, frames[count - 1])) && is_scheduler(function))
		count--;
	return count;
}

/* Returns the wait that a function shows, or NULL. */
static const char *state_in(const char *function)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (!strncmp(function, states[i].function, strlen(states[i].function)))
			return states[i].state;
	return NULL;
}

/* Returns what the thread waits for, by the function nearest to the leaf that shows it, or NULL. */
static const char *state_in_kernel(const struct profile *profile, const uint32_t *frames, size_t count)
{
	const char *state = NULL, *function;

	while (!state && count-- > 0 && (function = kernel_function(profile, frames[count])))
		state = state_in(function);
	return state;
}

const char *state_of(const struct profile *profile, const uint32_t *frames, size_t count, uint16_t flags)
{
	const char *state = state_in_kernel(profile, frames, count);
	bool is_io = state && !strcmp(state, "[io]");

	if (flags & DUET_SAMPLE_FAULT && (!state || is_io))
		return "[page fault]"; /* perhaps of a file; then the thread waits for a device, too */
	if (state)
		return state;
	return flags & DUET_SAMPLE_IO ? "[io]" : "[blocked]";
}
