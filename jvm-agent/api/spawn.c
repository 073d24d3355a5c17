/* SPDX-License-Identifier: MIT */
#include "api/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libc_versions.h"

#define STACK_BYTES (32u << 10) /* for each of the two processes; both make system calls only */

struct spawning {
	const struct spawn *spawn;
	char *stack; /* of the second process */
	int pid; /* of the second process, or -errno */
	int error; /* of its exec */
};

/*
 * A child that shares our memory until it has called exec or exit; we sleep until then. libc's clone() of glibc before
 * 2.25 would overwrite the cached thread id that the child shares with us, and vfork() sends SIGCHLD when the child
 * ends. `signo`: the one for its end; 0: none. Returns the pid or -errno. `run` must not return.
 */
#if defined(__x86_64__)
static long share_memory(int signo, char *stack_end, void (*run)(void *), void *context)
{
	register void (*in_r8)(void *) __asm__("r8") = run;
	register void *in_r9 __asm__("r9") = context;
	register long in_r10 __asm__("r10") = 0;
	long result;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r9, %%rdi\n\t"
			 "call *%%r8\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(result)
			 : "a"((long)SYS_clone), "D"((long)(CLONE_VM | CLONE_VFORK | signo)), "S"(stack_end), "d"(0l),
			   "r"(in_r8), "r"(in_r9), "r"(in_r10)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static long share_memory(int signo, char *stack_end, void (*run)(void *), void *context)
{
	register long x0 __asm__("x0") = CLONE_VM | CLONE_VFORK | signo;
	register char *x1 __asm__("x1") = stack_end;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register void (*x5)(void *) __asm__("x5") = run;
	register void *x6 __asm__("x6") = context;
	register long x8 __asm__("x8") = SYS_clone;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "mov x0, x6\n\t"
			 "blr x5\n\t"
			 "brk #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x6), "r"(x8)
			 : "memory");
	return x0;
}
#endif

/* The second process becomes the program. Its parent ends before it, so that init collects it. */
static void become_program(void *context)
{
	struct spawning *spawning = context;
	const struct spawn *spawn = spawning->spawn;

	fcntl(spawn->kept, F_SETFD, 0); /* in this process only: descriptors are not shared */
	syscall(SYS_execveat, spawn->executable, "", spawn->argv, spawn->envp, AT_EMPTY_PATH);
	execve(spawn->path, spawn->argv, spawn->envp); /* Linux before 3.19, or a filter of system calls */
	spawning->error = -errno;
	_exit(127);
}

/* The first process ends at once, without a signal. */
static void begin_second(void *context)
{
	struct spawning *spawning = context;

	spawning->pid = (int)share_memory(SIGCHLD, spawning->stack + STACK_BYTES, become_program, spawning);
	_exit(0);
}

static int begin_first(struct spawning *spawning)
{
	sigset_t all, old;
	long first;

	/* Handlers of this process must not run in one that shares its memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	first = share_memory(0, spawning->stack + 2 * STACK_BYTES, begin_second, spawning);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (first < 0)
		return (int)first;
	while (waitpid((pid_t)first, NULL, __WALL) < 0 && errno == EINTR)
		;
	return spawning->error ? spawning->error : spawning->pid;
}

int spawn_detached(const struct spawn *spawn)
{
	struct spawning spawning = {.spawn = spawn};
	int pid;

	spawning.stack = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (spawning.stack == MAP_FAILED)
		return -ENOMEM;
	pid = begin_first(&spawning);
	munmap(spawning.stack, 2 * STACK_BYTES);
	return pid;
}
