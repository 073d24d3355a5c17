/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/recorder_link.h"
#include "duet_recorder.h"
#include "libc_versions.h"

#define GREETING_MS 10000
#define PLACES 4 /* of an executable beside the library; the last candidate is the carried one */
#define MEMFD_CLOEXEC 1u
#define MEMFD_EXEC 16u /* Linux 6.3 */

extern char **environ;
/*
 * The executable inside the library, without its symbols. libasyncProfiler.so contains it, so that one file is a full
 * installation. libduet.so, which the executable itself contains, does not.
 */
extern const unsigned char carried_executable[];
extern const uint64_t carried_executable_bytes; /* 0: none */

/* fstat() of newer C libraries does not exist in older ones. */
static int read_stat(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

/* Returns true if other users cannot replace or change the file. A user's own group often may write to his files. */
static bool is_trusted(const struct stat *st)
{
	bool is_own_group = st->st_gid == 0 || st->st_gid == getegid();

	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & S_IWOTH) &&
	       (is_own_group || !(st->st_mode & S_IWGRP));
}

/* Returns a descriptor, or -1. `folder` is changed. */
static int open_trusted(char *folder, const char *name)
{
	struct stat st;
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

	if (dir >= 0 && !read_stat(dir, &st) && is_trusted(&st))
		fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* it may be a pipe */
	if (dir >= 0)
		close(dir);
	if (fd >= 0 && (read_stat(fd, &st) || !S_ISREG(st.st_mode) || !is_trusted(&st))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Stores the folder of this library, without links. Returns false if the library was removed. */
static bool own_folder(char folder[PATH_MAX])
{
	Dl_info info;
	char *slash;

	if (!dladdr((const void *)(uintptr_t)start_recorder, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, folder))
		return false;
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

static int open_beside(int which)
{
	static const char *const places[PLACES][2] = {
		{"", "duet"}, {"/../bin", "duet"}, {"", "asprof"}, {"/../bin", "asprof"}};
	char folder[PATH_MAX];
	size_t length;

	if (!own_folder(folder))
		return -1;
	length = strlen(folder);
	if (length + strlen(places[which][0]) >= sizeof(folder))
		return -1;
	strcpy(folder + length, places[which][0]);
	return open_trusted(folder, places[which][1]);
}

/* Returns a descriptor of the executable that the library carries, or -1. */
static int open_carried(void)
{
	int fd = -1;

	if (!carried_executable_bytes)
		return -1;
	fd = (int)syscall(SYS_memfd_create, "duet", MEMFD_CLOEXEC | MEMFD_EXEC);
	if (fd < 0)
		fd = (int)syscall(SYS_memfd_create, "duet", MEMFD_CLOEXEC);
	if (fd >= 0 && !link_write(fd, carried_executable, carried_executable_bytes)) {
		close(fd);
		fd = -1;
	}
	madvise((void *)(uintptr_t)carried_executable, carried_executable_bytes, MADV_DONTNEED);
	return fd;
}

/* True for a variable that would make the recorder load libraries, or the library in it start a recording. */
static bool is_left_out(const char *variable)
{
	static const char *const names[] = {"LD_PRELOAD=", "LD_LIBRARY_PATH=", "LD_AUDIT=", "ASPROF_COMMAND="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Returns the list, whose strings are the process's own, or NULL. */
static char **copy_environment(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ && environ[count])
		count++;
	copy = malloc((count + 1) * sizeof(*copy));
	for (size_t i = 0; copy && i < count && environ[i]; i++)
		if (!is_left_out(environ[i]))
			copy[kept++] = environ[i];
	if (copy)
		copy[kept] = NULL;
	return copy;
}

/* Starts a program that is not a child: the JVM gets no SIGCHLD when it ends, and need not wait for it. */

struct spawning {
	int executable; /* O_CLOEXEC */
	const char *path; /* its path below /proc/self/fd */
	char *const *argv, *const *envp;
	int kept; /* descriptor of this process that the program gets under the same number */
	char *stack; /* of the second process */
	int pid; /* of the second process, or -errno */
	int error; /* of its exec */
};

#define STACK_BYTES (32u << 10) /* for each of the two processes; both make system calls only */

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

	fcntl(spawning->kept, F_SETFD, 0); /* in this process only: descriptors are not shared */
	syscall(SYS_execveat, spawning->executable, "", spawning->argv, spawning->envp, AT_EMPTY_PATH);
	execve(spawning->path, spawning->argv, spawning->envp); /* Linux before 3.19, or a filter of system calls */
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

/*
 * Returns the pid or -errno. The caller sleeps until the program has begun. Nothing of this process is copied, however
 * large it is. The recorder takes its pid from the socket, whose ends were made here.
 */
static int start(int executable, int end)
{
	char descriptor[16], path[32];
	char *argv[] = {(char *)"duet", (char *)"asprof", (char *)DUET_RECORDER_WORD, descriptor, NULL};
	char **envp = copy_environment();
	struct spawning spawning = {.executable = executable, .path = path, .argv = argv, .envp = envp, .kept = end};
	int pid = -ENOMEM;

	snprintf(descriptor, sizeof(descriptor), "%d", end);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", executable);
	spawning.stack = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (envp && spawning.stack != MAP_FAILED)
		pid = begin_first(&spawning);
	if (spawning.stack != MAP_FAILED)
		munmap(spawning.stack, 2 * STACK_BYTES);
	free(envp);
	return pid;
}

/* Returns true if the recorder is of this build: another one may use other questions and answers. */
static bool has_greeted(int socket)
{
	struct {
		struct duet_answer head;
		char version[sizeof(DUET_VERSION) + 1];
	} greeting = {0};
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	const ssize_t bytes = sizeof(greeting.head) + strlen(DUET_VERSION);

	while (poll(&fd, 1, GREETING_MS) < 0 && errno == EINTR)
		;
	return recv(socket, &greeting, sizeof(greeting), MSG_DONTWAIT) == bytes &&
	       !strcmp(greeting.version, DUET_VERSION);
}

/* Returns 0 or -errno. */
static int try_candidate(int executable, struct started_recorder *ret)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	ret->pid = start(executable, ends[1]);
	close(ends[1]);
	ret->socket = ends[0];
	if (ret->pid > 0 && has_greeted(ends[0]))
		return 0;
	close(ends[0]);
	return ret->pid < 0 ? ret->pid : -EPROTO;
}

int start_recorder(struct started_recorder *ret, char *why, size_t size)
{
	int error = -ENOENT;

	for (int which = 0; which <= PLACES && error; which++) {
		int executable = which < PLACES ? open_beside(which) : open_carried();

		if (executable < 0)
			continue;
		error = try_candidate(executable, ret);
		close(executable);
	}
	if (error == -ENOENT)
		snprintf(why, size, "There is no duet %s beside the library, in its folder or in ../bin", DUET_VERSION);
	else if (error)
		snprintf(why, size, "duet could not be started: %s",
			 error == -EPROTO ? "it has another version, or ended at once" : strerror(-error));
	return error;
}
