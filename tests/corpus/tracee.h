/* SPDX-License-Identifier: MIT */
/* One thread of another process, stopped, stepped and continued. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fixtures/walk_corpus.h"

struct tracee {
	pid_t tid;
	bool is_stopped;
	bool is_gone;
	int signal; /* that it stopped for, and has not got yet; 0: none */
};

/* Takes note of a stop, if there is one. */
static inline void tracee_look(struct tracee *tracee)
{
	int status;

	if (tracee->is_stopped || tracee->is_gone || waitpid(tracee->tid, &status, __WALL | WNOHANG) != tracee->tid)
		return;
	tracee->is_gone = !WIFSTOPPED(status);
	tracee->is_stopped = WIFSTOPPED(status);
	tracee->signal = 0;
	if (tracee->is_stopped && status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
		tracee->signal = WSTOPSIG(status);
}

static inline bool tracee_wait(struct tracee *tracee, uint64_t timeout_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + timeout_ns;

	do {
		tracee_look(tracee);
		if (!tracee->is_stopped && !tracee->is_gone)
			usleep(5);
	} while (!tracee->is_stopped && !tracee->is_gone && clock_monotonic_ns() < until_ns);
	return tracee->is_stopped;
}

/* One step, or with PTRACE_CONT on. A signal that it stopped for is delivered. */
static inline void tracee_go(struct tracee *tracee, enum __ptrace_request how)
{
	tracee->is_gone |= ptrace(how, tracee->tid, NULL, (void *)(intptr_t)tracee->signal) < 0;
	tracee->is_stopped = false;
	tracee->signal = 0;
}

static inline bool tracee_stop(struct tracee *tracee, pid_t tid)
{
	*tracee = (struct tracee){.tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return false;
	(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return tracee_wait(tracee, NS_PER_SEC);
}

static inline void tracee_interrupt(struct tracee *tracee)
{
	(void)ptrace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);
	tracee_wait(tracee, NS_PER_SEC);
}

#define TRACEE_PUSHF 0x9c
#define TRACEE_TRAP 0x100ul /* the flag by which a processor steps */

static inline bool tracee_is_at_pushf(const struct tracee *tracee)
{
	long pc = ptrace(PTRACE_PEEKUSER, tracee->tid, offsetof(struct user, regs.rip), NULL);

	return !tracee->signal && (ptrace(PTRACE_PEEKTEXT, tracee->tid, pc, NULL) & 0xff) == TRACEE_PUSHF;
}

/* Stepped over, pushf has pushed the flag as well; a popf would set it when nobody steps any more. */
static inline void tracee_clear_trap(const struct tracee *tracee)
{
	long sp = ptrace(PTRACE_PEEKUSER, tracee->tid, offsetof(struct user, regs.rsp), NULL);
	unsigned long flags = (unsigned long)ptrace(PTRACE_PEEKDATA, tracee->tid, sp, NULL);

	(void)ptrace(PTRACE_POKEDATA, tracee->tid, sp, flags & ~TRACEE_TRAP);
}

/*
 * False when it waits in a system call: it is stopped all the same. The kernel has queued the step's SIGTRAP then, and
 * reports the interruption first. Nobody but us may get that signal: it would end the process.
 */
static inline bool tracee_step(struct tracee *tracee)
{
	bool is_pushf = tracee_is_at_pushf(tracee);

	tracee_go(tracee, PTRACE_SINGLESTEP);
	if (tracee_wait(tracee, 20 * NS_PER_MS)) {
		if (is_pushf)
			tracee_clear_trap(tracee);
		return true;
	}
	tracee_interrupt(tracee);
	tracee_go(tracee, PTRACE_CONT);
	if (!tracee_wait(tracee, NS_PER_MS))
		tracee_interrupt(tracee);
	return false;
}

static inline void tracee_leave(struct tracee *tracee)
{
	if (!tracee->is_stopped && !tracee->is_gone)
		tracee_interrupt(tracee);
	if (tracee->is_stopped)
		(void)ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(intptr_t)tracee->signal);
}

static inline bool tracee_regs(const struct tracee *tracee, struct walk_regs *ret, bool *ret_in_kernel)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tracee->tid, NULL, &regs) < 0)
		return false;
	*ret_in_kernel = (int64_t)regs.orig_rax >= 0;
	*ret = (struct walk_regs){
		.pc = regs.rip,
		.general = {regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi, regs.r8,
			    regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15},
	};
	return true;
}

/* Sends the signal that BPF would send. The thread gets it when it continues, before its next instruction. */
static inline bool tracee_signal(pid_t pid, pid_t tid, int signo, uint64_t cookie)
{
	siginfo_t info = {.si_signo = signo, .si_code = SI_QUEUE};

	info.si_value.sival_ptr = (void *)(uintptr_t)cookie;
	return syscall(SYS_rt_tgsigqueueinfo, pid, tid, signo, &info) == 0;
}
