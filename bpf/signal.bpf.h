/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides whether a thread may be signalled, so that the agent adds its Java frames, and sends the signal. Every rule
 * here protects the application or its system calls. When a rule forbids the signal, sample->no_signal says which one.
 */
#pragma once

#include "compat.bpf.h"
#include "descriptor.bpf.h"
#include "filter.bpf.h"
#include "syscalls.bpf.h"

/* A kfunc (Linux 6.13), weak, in a program of its own: older kernels load no program that calls it. */
extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type, u64 value) __ksym __weak;

static __always_inline bool signal_is_member(const sigset_t *set, u32 signo)
{
	return set->sig[0] >> (signo - 1) & 1;
}

/* Returns the handler that the kernel has for this signal in the thread's process. */
static __always_inline u64 signal_handler(struct task_struct *task, u32 signo)
{
	struct k_sigaction *actions = BPF_CORE_READ(task, sighand)->action;
	struct k_sigaction *action = (void *)actions + (signo - 1) * bpf_core_type_size(struct k_sigaction);

	return (u64)BPF_CORE_READ(action, sa.sa_handler);
}

#define FUTEX_WAIT 0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_COMMAND 127 /* include/uapi/linux/futex.h: the rest of the operation is flags */

/* Returns true for futex() calls that wait no longer than a given time. After a handler, they return EINTR. */
static __always_inline bool signal_breaks_futex(struct pt_regs *regs)
{
	u32 command = PT_REGS_PARM2_CORE_SYSCALL(regs) & FUTEX_COMMAND;

	return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && PT_REGS_PARM4_CORE_SYSCALL(regs);
}

#define NO_TIMEOUT ((long)(~0ul >> 1)) /* MAX_SCHEDULE_TIMEOUT, include/linux/sched.h */

/* Returns true for a socket with SO_RCVTIMEO or SO_SNDTIMEO. After a handler, waiting for it returns EINTR. */
static __always_inline bool signal_breaks_socket(u32 fd)
{
	struct file *file = descriptor_file(fd);
	struct socket *socket;
	struct sock *sock;

	if (!file || descriptor_type(file) != S_IFSOCK)
		return false;
	socket = BPF_CORE_READ(file, private_data);
	sock = BPF_CORE_READ(socket, sk);
	return BPF_CORE_READ(sock, sk_rcvtimeo) != NO_TIMEOUT || BPF_CORE_READ(sock, sk_sndtimeo) != NO_TIMEOUT;
}

/* Returns true if a signal would break the thread's system call, or if its registers could not be read. */
static __always_inline bool signal_breaks_syscall(struct task_struct *task, const struct duet_sample *sample)
{
	struct pt_regs *regs;
	s64 number;

	if (!(sample->flags & DUET_SAMPLE_KERNEL))
		return false;
	if (!(sample->flags & DUET_SAMPLE_USER_REGS))
		return true;
	regs = task_user_regs(task);
	number = regs_syscall(regs);
	if (syscall_may_be_of_socket(number))
		return signal_breaks_socket((u32)PT_REGS_PARM1_CORE_SYSCALL(regs));
	return syscall_not_restarted(number) || (number == SYSCALL_FUTEX && signal_breaks_futex(regs));
}

static __always_inline enum duet_no_signal signal_refuse(struct duet_sample *sample, enum duet_no_signal why,
							 enum duet_bpf_counter loss)
{
	/* A complete walk needs no signal: nothing is lost. */
	if (!(sample->flags & DUET_SAMPLE_USER_COMPLETE))
		duet_count(loss);
	return sample->no_signal = why;
}

/* Returns why the thread must not be signalled, or DUET_NO_SIGNAL_NONE. */
static __always_inline enum duet_no_signal signal_check(struct task_struct *task, struct duet_sample *sample,
							const struct duet_jvm_target *jvm)
{
	sigset_t blocked = BPF_CORE_READ(task, blocked);

	/*
	 * After exec's point of no return the handler is gone, and the signal would kill the new program. A child of
	 * vfork(), see filter_leader(), is no thread of the JVM.
	 */
	if (BPF_CORE_READ(task, flags) & PF_EXITING || task_in_exec(task) || filter_tgid(task) != sample->head.tgid)
		return signal_refuse(sample, DUET_NO_SIGNAL_EXITING, DUET_BPF_SIGNAL_EXITING);
	if (signal_breaks_syscall(task, sample))
		return signal_refuse(sample, DUET_NO_SIGNAL_SYSCALL, DUET_BPF_SIGNAL_SYSCALL);
	/*
	 * The kernel builds the handler's frame first and blocks the signal afterwards. In between, pc is already the
	 * handler's first instruction but the signal is not blocked yet.
	 */
	if (signal_is_member(&blocked, jvm->signo) || sample->user_pc == jvm->handler)
		return signal_refuse(sample, DUET_NO_SIGNAL_BLOCKED, DUET_BPF_SIGNAL_BLOCKED);
	if (signal_handler(task, jvm->signo) != jvm->handler)
		return signal_refuse(sample, DUET_NO_SIGNAL_STOLEN, DUET_BPF_SIGNAL_STOLEN);
	return DUET_NO_SIGNAL_NONE;
}

/*
 * Returns true if the event and --signals allow a signal, and the sample needs the agent's half or was chosen for the
 * cross-check (one in DUET_CHECK_ONE_IN). With --signals always, returns true for every sample of such an event.
 */
static __always_inline bool signal_is_needed(struct duet_sample *sample)
{
	if (!duet_event(sample->event)->may_signal) {
		sample->no_signal = DUET_NO_SIGNAL_EVENT;
		return false;
	}
	if (duet_config.options.signals == DUET_SIGNALS_NEVER)
		sample->no_signal = DUET_NO_SIGNAL_UNWANTED;
	if (duet_config.options.signals != DUET_SIGNALS_NEEDED)
		return duet_config.options.signals == DUET_SIGNALS_ALWAYS;
	return !(sample->flags & DUET_SAMPLE_WALKED) || bpf_get_prandom_u32() % DUET_CHECK_ONE_IN == 0;
}

/* Returns the signal to send for this sample, or 0. The sample's flags and no_signal say why none is sent. */
static __always_inline u32 signal_wanted(struct duet_sample *sample)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct duet_jvm_target *jvm;
	sigset_t pending;

	if (!(sample->flags & DUET_SAMPLE_JVM) || !signal_is_needed(sample))
		return 0;
	jvm = filter_jvm(sample->head.tgid, sample->start_ns);
	if (!jvm || jvm->signo < 1 || jvm->signo > 64) { /* 0: the JVM is read from outside, and has no handler */
		sample->no_signal = DUET_NO_SIGNAL_UNWANTED;
		return 0;
	}
	if (signal_check(task, sample, jvm) != DUET_NO_SIGNAL_NONE)
		return 0;
	/* Real-time signals queue. Without this check, they would pile up for a thread that is kept off its CPU. */
	pending = BPF_CORE_READ(task, pending.signal);
	if (signal_is_member(&pending, jvm->signo)) {
		sample->flags |= DUET_SAMPLE_PENDING;
		return 0;
	}
	return jvm->signo;
}

static __always_inline void signal_result(struct duet_sample *sample, int error)
{
	if (!error) {
		sample->flags |= DUET_SAMPLE_SIGNALLED;
		return;
	}
	signal_refuse(sample, DUET_NO_SIGNAL_REFUSED, error == -EBUSY ? DUET_BPF_SIGNAL_BUSY : DUET_BPF_SIGNAL_FAILED);
}

static __noinline void signal_java_thread(struct duet_sample *sample)
{
	u32 signo = signal_wanted(sample);

	if (signo)
		signal_result(sample, bpf_send_signal_thread(signo));
}

/*
 * Likewise, with a cookie in si_value. The cookie is the sample's time: no thread is sampled twice in one nanosecond.
 */
static __noinline void signal_java_thread_cookie(struct duet_sample *sample)
{
	u32 signo = signal_wanted(sample);
	u64 cookie = sample->head.time_ns;

	if (!signo)
		return;
	signal_result(sample, bpf_send_signal_task(bpf_get_current_task_btf(), signo, PIDTYPE_PID, cookie));
	if (sample->flags & DUET_SAMPLE_SIGNALLED) {
		sample->flags |= DUET_SAMPLE_COOKIE;
		sample->cookie = cookie;
	}
}
