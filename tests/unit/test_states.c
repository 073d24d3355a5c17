/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "duet_record.h"
#include "join/states.h"

#define MOST 16

struct fixture {
	struct profile profile;
	uint32_t frames[MOST];
	size_t count;
};

static void push(struct fixture *f, enum frame_kind kind, const char *name)
{
	const struct frame frame = {.kind = kind, .name = intern_str(&f->profile.strings, name), .bci = -1};

	assert_true(f->count < MOST);
	f->frames[f->count++] = profile_frame(&f->profile, &frame);
}

/* The state of a thread with these kernel functions, root first, that main() has called. The last is NULL. */
static const char *state_with(uint16_t flags, const char *const *functions)
{
	struct fixture f = {.count = 0};
	const char *found;

	assert_int_equal(profile_init(&f.profile), 0);
	push(&f, FRAME_NATIVE, "futex_of_mine");
	for (; *functions; functions++)
		push(&f, FRAME_KERNEL, *functions);
	found = state_of(&f.profile, f.frames, f.count, flags);
	profile_release(&f.profile);
	return found;
}

#define STATE(flags, ...) state_with(flags, (const char *const[]){__VA_ARGS__, NULL})

static void functions_tell_the_state(void **state)
{
	assert_string_equal(STATE(0, "do_syscall_64", "do_futex", "futex_do_wait", "schedule"), "[futex]");
	assert_string_equal(STATE(0, "do_syscall_64", "futex_wait_queue_me"), "[futex]");
	assert_string_equal(STATE(0, "do_epoll_wait", "ep_poll", "schedule_hrtimeout_range"), "[epoll]");
	assert_string_equal(STATE(0, "do_select", "poll_schedule_timeout.constprop.0"), "[poll]");
	assert_string_equal(STATE(0, "vfs_read", "anon_pipe_read"), "[pipe]");
	assert_string_equal(STATE(0, "vfs_read", "eventfd_read", "do_wait_intr_irq"), "[eventfd]");
	assert_string_equal(STATE(0, "__x64_sys_wait4", "do_wait"), "[child]");
	assert_string_equal(STATE(0, "__x64_sys_vfork", "kernel_clone"), "[child]");
	assert_string_equal(STATE(0, "__do_sys_flock", "locks_lock_inode_wait"), "[file lock]");
	assert_string_equal(STATE(0, "get_signal", "__refrigerator"), "[stopped]");
	assert_string_equal(STATE(0, "__x64_sys_pause"), "[signal]");
	assert_string_equal(STATE(0, "unix_dgram_sendmsg", "sock_alloc_send_pskb"), "[socket]");
	assert_string_equal(STATE(0, "n_tty_write", "wait_woken"), "[terminal]");
	assert_string_equal(STATE(0, "sync_inodes_sb", "wb_wait_for_completion"), "[io]");
	assert_string_equal(STATE(0, "vfs_read", "something_new"), "[blocked]");
	assert_string_equal(STATE(0, NULL), "[blocked]");
}

/* A read from a socket that waits for the socket's lock waits for the lock. */
static void the_leaf_counts_most(void **state)
{
	assert_string_equal(STATE(0, "tcp_recvmsg", "__mutex_lock.constprop.0", "schedule"), "[kernel lock]");
}

static void flags_tell_the_rest(void **state)
{
	assert_string_equal(STATE(DUET_SAMPLE_IO, "vfs_read"), "[io]");
	assert_string_equal(STATE(DUET_SAMPLE_FAULT | DUET_SAMPLE_IO, "handle_mm_fault", "io_schedule"),
			    "[page fault]");
	assert_string_equal(STATE(DUET_SAMPLE_FAULT, NULL), "[page fault]");
	assert_string_equal(STATE(DUET_SAMPLE_FAULT, "do_signal_stop"), "[stopped]");
}

static void tracing_and_scheduler_are_cut_off(void **state)
{
	struct fixture f = {.count = 0};

	assert_int_equal(profile_init(&f.profile), 0);
	push(&f, FRAME_NATIVE, "__schedule");
	assert_int_equal(state_trim(&f.profile, f.frames, f.count), 1);
	push(&f, FRAME_KERNEL, "futex_do_wait");
	push(&f, FRAME_KERNEL, "schedule");
	assert_int_equal(state_trim(&f.profile, f.frames, f.count), 2);
	push(&f, FRAME_KERNEL, "__schedule");
	push(&f, FRAME_KERNEL, "bpf_trace_run1");
	push(&f, FRAME_KERNEL, "bpf_prog_0123_offcpu_return");
	assert_int_equal(state_trim(&f.profile, f.frames, f.count), 2);
	for (int i = 0; i < 8; i++)
		push(&f, FRAME_KERNEL, "other");
	assert_int_equal(state_trim(&f.profile, f.frames, f.count), f.count);
	profile_release(&f.profile);
}

/* The kind of interrupt with these kernel functions, leaf first, and how many of them are its own. */
static enum interrupt interrupt_with(size_t *ret_count, const char *const *functions)
{
	struct fixture f = {.count = 0};
	enum interrupt found;

	assert_int_equal(profile_init(&f.profile), 0);
	for (; *functions; functions++)
		push(&f, FRAME_KERNEL, *functions);
	*ret_count = f.count;
	found = state_interrupt(&f.profile, f.frames, ret_count);
	profile_release(&f.profile);
	return found;
}

#define INTERRUPT(count, ...) interrupt_with(count, (const char *const[]){__VA_ARGS__, NULL})

/* The function nearest to the leaf tells: a device's interrupt may come while a softirq runs, or the reverse. */
static void interrupts_are_told_by_their_frames(void **state)
{
	size_t count;

	assert_int_equal(INTERRUPT(&count, "hrtimer_wakeup", "__hrtimer_run_queues", "hrtimer_interrupt",
				   "asm_sysvec_apic_timer_interrupt", "vfs_read"),
			 INTERRUPT_TIMER);
	assert_int_equal(count, 1);
	assert_int_equal(INTERRUPT(&count, "process_timeout", "call_timer_fn", "run_timer_softirq", "__do_softirq"),
			 INTERRUPT_TIMER);
	assert_int_equal(INTERRUPT(&count, "sock_def_readable", "net_rx_action", "handle_softirqs", "do_softirq",
				   "ip_finish_output2", "udp_sendmsg"),
			 INTERRUPT_SOFT);
	assert_int_equal(count, 2);
	assert_int_equal(INTERRUPT(&count, "complete", "vring_interrupt", "__handle_irq_event_percpu",
				   "handle_irq_event", "handle_softirqs"),
			 INTERRUPT_DEVICE);
	assert_int_equal(count, 2);
	assert_int_equal(INTERRUPT(&count, "irq_work_run_list", "sysvec_irq_work"), INTERRUPT_OTHER);
	assert_int_equal(INTERRUPT(&count, "wake_up_q", "futex_wake", "do_syscall_64"), INTERRUPT_NONE);
	assert_int_equal(INTERRUPT(&count, "__wake_up", "handle_userfault", "asm_exc_page_fault"), INTERRUPT_NONE);
	assert_int_equal(count, 3);
}

static void tracing_of_the_waking_is_skipped(void **state)
{
	struct fixture f = {.count = 0};

	assert_int_equal(profile_init(&f.profile), 0);
	push(&f, FRAME_KERNEL, "bpf_prog_0123_wakeup_waking");
	push(&f, FRAME_KERNEL, "bpf_trace_run1");
	assert_int_equal(state_skip_waking(&f.profile, f.frames, f.count), 0);
	push(&f, FRAME_KERNEL, "try_to_wake_up");
	push(&f, FRAME_KERNEL, "wake_up_q");
	assert_int_equal(state_skip_waking(&f.profile, f.frames, f.count), 3);
	profile_release(&f.profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_tell_the_state),
		cmocka_unit_test(the_leaf_counts_most),
		cmocka_unit_test(flags_tell_the_rest),
		cmocka_unit_test(tracing_and_scheduler_are_cut_off),
		cmocka_unit_test(interrupts_are_told_by_their_frames),
		cmocka_unit_test(tracing_of_the_waking_is_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
