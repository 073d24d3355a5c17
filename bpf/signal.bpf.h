/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May this thread be signalled, so that the agent adds its Java frames? Every
 * rule here keeps an application alive or its system calls undisturbed; when one
 * says no, the sample says which.
 */
#ifndef DUET_SIGNAL_BPF_H
#define DUET_SIGNAL_BPF_H

#include "compat.bpf.h"
#include "filter.bpf.h"
#include "syscalls.bpf.h"

/* Linux 6.13. Weak, and called by programs of their own: older kernels refuse a program with a kfunc call in it. */
extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type, u64 value) __ksym __weak;

static __always_inline bool signal_is_member(const sigset_t *set, u32 signo)
{
	return set->sig[0] >> (signo - 1) & 1;
}

/* The kernel's side of the thread's disposition for this signal. */
static __always_inline u64 signal_handler(struct task_struct *task, u32 signo)
{
	struct k_sigaction *actions = BPF_CORE_READ(task, sighand)->action;
	struct k_sigaction *action = (void *)actions + (signo - 1) * bpf_core_type_size(struct k_sigaction);

	return (u64)BPF_CORE_READ(action, sa.sa_handler);
}

/*
 * The thread was interrupted in a system call that a signal would break. When
 * its registers could not be read, suppose so.
 */
static __always_inline bool signal_breaks_syscall(struct task_struct *task, const struct duet_sample *sample)
{
	if (!(sample->flags & DUET_SAMPLE_KERNEL))
		return false;
	return !(sample->flags & DUET_SAMPLE_USER_REGS) || syscall_not_restarted(regs_syscall(task_user_regs(task)));
}

static __always_inline enum duet_no_signal signal_refuse(struct duet_sample *sample, enum duet_no_signal why,
							 enum duet_bpf_counter loss)
{
	/* The walk carries it: nothing is lost. */
	if (!(sample->flags & DUET_SAMPLE_USER_COMPLETE))
		duet_count(loss);
	return sample->no_signal = why;
}

/* Why the thread must not be signalled, or DUET_NO_SIGNAL_NONE. */
static __always_inline enum duet_no_signal signal_check(struct task_struct *task, struct duet_sample *sample,
							const struct duet_jvm_target *jvm)
{
	sigset_t blocked = BPF_CORE_READ(task, blocked);

	/* Past the point of no return of exec the handler is gone, and the signal would kill the new program. */
	if (BPF_CORE_READ(task, flags) & PF_EXITING || task_in_exec(task))
		return signal_refuse(sample, DUET_NO_SIGNAL_EXITING, DUET_BPF_SIGNAL_EXITING);
	if (signal_breaks_syscall(task, sample))
		return signal_refuse(sample, DUET_NO_SIGNAL_SYSCALL, DUET_BPF_SIGNAL_SYSCALL);
	/* At the handler's first instruction its frame is made, but the signal is blocked only afterwards. */
	if (signal_is_member(&blocked, jvm->signo) || sample->user_pc == jvm->handler)
		return signal_refuse(sample, DUET_NO_SIGNAL_BLOCKED, DUET_BPF_SIGNAL_BLOCKED);
	if (signal_handler(task, jvm->signo) != jvm->handler)
		return signal_refuse(sample, DUET_NO_SIGNAL_STOLEN, DUET_BPF_SIGNAL_STOLEN);
	return DUET_NO_SIGNAL_NONE;
}

/* Would the agent's half tell more, or is it this sample's turn to be checked? */
static __always_inline bool signal_is_needed(struct duet_sample *sample)
{
	if (!duet_event(sample->event)->may_signal) {
		sample->no_signal = DUET_NO_SIGNAL_EVENT;
		return false;
	}
	if (duet_config.signals == DUET_SIGNALS_NEVER)
		sample->no_signal = DUET_NO_SIGNAL_UNWANTED;
	if (duet_config.signals != DUET_SIGNALS_NEEDED)
		return duet_config.signals == DUET_SIGNALS_ALWAYS;
	return !(sample->flags & DUET_SAMPLE_WALKED) || bpf_get_prandom_u32() % DUET_CHECK_ONE_IN == 0;
}

/* The signal to send for this sample, or 0; the sample's flags say which and why. */
static __always_inline u32 signal_wanted(struct duet_sample *sample)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct duet_jvm_target *jvm;
	sigset_t pending;

	if (!(sample->flags & DUET_SAMPLE_JVM) || !signal_is_needed(sample))
		return 0;
	jvm = filter_jvm(sample->head.tgid, sample->start_ns);
	if (!jvm || jvm->signo < 1 || jvm->signo > 64)
		return 0;
	if (signal_check(task, sample, jvm) != DUET_NO_SIGNAL_NONE)
		return 0;
	/* Real-time signals queue: without this, a thread that is kept off its CPU would pile them up. */
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

/* The same with a cookie in si_value. The time serves: no thread is sampled twice in one nanosecond. */
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

#endif
