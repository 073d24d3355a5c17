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
	{"eventfd_", "[eventfd]"},
	{"timerfd_", "[sleep]"},
	{"signalfd_", "[signal]"},
	{"inotify_", "[file events]"},
	{"fanotify_", "[file events]"},
	{"fuse_", "[io]"},
	{"nfs_", "[io]"},
	{"nfs4_", "[io]"},
	{"flock_", "[file lock]"},
	{"locks_lock_inode_wait", "[file lock]"},
	{"__break_lease", "[file lock]"},
	{"fcntl_setlk", "[file lock]"},
	{"do_msgrcv", "[message queue]"},
	{"do_msgsnd", "[message queue]"},
	{"do_mq_", "[message queue]"},
	{"do_semtimedop", "[semaphore]"},
	{"__do_semtimedop", "[semaphore]"},
	{"sk_wait_data", "[socket]"},
	{"sk_stream_wait", "[socket]"},
	{"inet_csk_accept", "[socket]"},
	{"inet_csk_wait_for_connect", "[socket]"},
	{"inet_wait_for_connect", "[socket]"},
	{"inet_stream_connect", "[socket]"},
	{"unix_stream_", "[socket]"},
	{"unix_wait_for_peer", "[socket]"},
	{"sock_alloc_send_pskb", "[socket]"},
	{"__skb_wait_for_more_packets", "[socket]"},
	{"tcp_", "[socket]"},
	{"vsock_", "[socket]"},
	{"do_wait_intr", NULL}, /* of eventfd and timerfd: the caller shows which */
	{"do_wait", "[child]"},
	{"__do_wait", "[child]"},
	{"kernel_wait4", "[child]"},
	{"kernel_clone", "[child]"}, /* vfork(2) */
	{"do_sigtimedwait", "[signal]"},
	{"sigsuspend", "[signal]"},
	{"__x64_sys_pause", "[signal]"},
	{"do_signal_stop", "[stopped]"},
	{"ptrace_stop", "[stopped]"},
	{"do_freezer_trap", "[stopped]"},
	{"__refrigerator", "[stopped]"}, /* the freezer of cgroup v1 */
	{"io_cqring_wait", "[io]"},
	{"io_schedule", "[io]"},
	{"jbd2_log_wait_commit", "[io]"},
	{"read_events", "[io]"},
	{"request_wait_answer", "[io]"},
	{"rpc_wait_bit_killable", "[io]"},
	{"submit_bio_wait", "[io]"},
	{"wb_wait_for_completion", "[io]"},
	{"inode_wait_for_writeback", "[io]"},
	{"n_tty_", "[terminal]"},
	{"__mutex_lock", "[kernel lock]"},
	{"__down", "[kernel lock]"},
	{"rwsem_", "[kernel lock]"},
	{"percpu_rwsem_wait", "[kernel lock]"},
	{"handle_userfault", "[page fault]"},
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

/* ---- wakers ---- */

size_t state_skip_waking(const struct profile *profile, const uint32_t *frames, size_t count)
{
	for (size_t i = 0; i < count && i < TRACING_FRAMES; i++) {
		const char *function = kernel_function(profile, frames[i]);

		if (!function)
			break;
		if (!strcmp(function, "try_to_wake_up"))
			return i + 1;
	}
	return 0;
}

/* Beginnings of the names of kernel functions that serve interrupts, of Linux 5.10 to 7.2. */
static const struct {
	const char *function;
	enum interrupt kind;
} interrupts[] = {
	{"__hrtimer_run_queues", INTERRUPT_TIMER},
	{"hrtimer_interrupt", INTERRUPT_TIMER},
	{"hrtimer_run_softirq", INTERRUPT_TIMER},
	{"call_timer_fn", INTERRUPT_TIMER},
	{"__run_timer", INTERRUPT_TIMER},
	{"run_timer_", INTERRUPT_TIMER},
	{"handle_softirqs", INTERRUPT_SOFT},
	{"__do_softirq", INTERRUPT_SOFT},
	{"do_softirq", INTERRUPT_SOFT},
	{"__softirqentry", INTERRUPT_SOFT},
	{"__handle_irq_event_percpu", INTERRUPT_DEVICE},
	{"handle_irq_event", INTERRUPT_DEVICE},
	{"sysvec_", INTERRUPT_OTHER},
	{"__sysvec_", INTERRUPT_OTHER},
	{"asm_sysvec_", INTERRUPT_OTHER},
	{"common_interrupt", INTERRUPT_OTHER},
	{"__common_interrupt", INTERRUPT_OTHER},
	{"asm_common_interrupt", INTERRUPT_OTHER},
	{"call_on_irq_stack", INTERRUPT_OTHER},
	{"do_interrupt_handler", INTERRUPT_OTHER},
	{"irq_work_run", INTERRUPT_OTHER},
	{"flush_smp_call_function_queue", INTERRUPT_OTHER},
	{"__flush_smp_call_function_queue", INTERRUPT_OTHER},
};

enum interrupt state_interrupt(const struct profile *profile, const uint32_t *frames, size_t *count)
{
	for (size_t at = 0; at < *count; at++) {
		const char *function = kernel_function(profile, frames[at]);

		for (size_t i = 0; function && i < sizeof(interrupts) / sizeof(*interrupts); i++)
			if (!strncmp(function, interrupts[i].function, strlen(interrupts[i].function))) {
				*count = at;
				return interrupts[i].kind;
			}
	}
	return INTERRUPT_NONE;
}
