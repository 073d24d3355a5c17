/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls that a signal must not interrupt although the handler is installed with SA_RESTART (signal(7)): waits
 * that return EINTR all the same; clone, which starts over after a signal; exec and exit, which the signal may outlive;
 * and rt_sigreturn, after which the thread has other registers than the sample.
 */
#pragma once

#include "vmlinux.h"

/* clang-format off */
#ifdef __TARGET_ARCH_x86
#define SYSCALL_FUTEX 202
#define SYSCALLS_NOT_RESTARTED(X) \
	X(7, poll) X(15, rt_sigreturn) X(23, select) X(34, pause) X(35, nanosleep) \
	X(56, clone) X(57, fork) X(58, vfork) X(59, execve) X(60, exit) X(65, semop) \
	X(69, msgsnd) X(70, msgrcv) X(128, rt_sigtimedwait) X(130, rt_sigsuspend) X(208, io_getevents) \
	X(219, restart_syscall) X(220, semtimedop) X(230, clock_nanosleep) X(231, exit_group) X(232, epoll_wait) \
	X(270, pselect6) X(271, ppoll) X(281, epoll_pwait) X(322, execveat) X(333, io_pgetevents) \
	X(426, io_uring_enter) X(435, clone3) X(441, epoll_pwait2)
/* Their first argument is a descriptor. They are not restarted if that is of a socket with a timeout. */
#define SYSCALLS_OF_SOCKETS(X) \
	X(0, read) X(1, write) X(19, readv) X(20, writev) X(40, sendfile) X(42, connect) X(43, accept) X(44, sendto) \
	X(45, recvfrom) X(46, sendmsg) X(47, recvmsg) X(288, accept4) X(299, recvmmsg) X(307, sendmmsg)
#else
#define SYSCALL_FUTEX 98
#define SYSCALLS_NOT_RESTARTED(X) \
	X(4, io_getevents) X(22, epoll_pwait) X(72, pselect6) X(73, ppoll) X(93, exit) X(94, exit_group) \
	X(101, nanosleep) X(115, clock_nanosleep) X(128, restart_syscall) X(133, rt_sigsuspend) \
	X(137, rt_sigtimedwait) X(139, rt_sigreturn) X(188, msgrcv) X(189, msgsnd) X(192, semtimedop) X(193, semop) \
	X(220, clone) X(221, execve) X(281, execveat) X(292, io_pgetevents) X(426, io_uring_enter) \
	X(435, clone3) X(441, epoll_pwait2)
#define SYSCALLS_OF_SOCKETS(X) \
	X(63, read) X(64, write) X(65, readv) X(66, writev) X(71, sendfile) X(202, accept) X(203, connect) \
	X(206, sendto) X(207, recvfrom) X(211, sendmsg) X(212, recvmsg) X(242, accept4) X(243, recvmmsg) \
	X(269, sendmmsg)
#endif
/* clang-format on */

#define SYSCALL_CASE(nr, name) case nr:

static __always_inline bool syscall_not_restarted(s64 number)
{
	switch (number) {
		SYSCALLS_NOT_RESTARTED(SYSCALL_CASE)
		return true;
	default:
		return false;
	}
}

static __always_inline bool syscall_may_be_of_socket(s64 number)
{
	switch (number) {
		SYSCALLS_OF_SOCKETS(SYSCALL_CASE)
		return true;
	default:
		return false;
	}
}

#undef SYSCALL_CASE
