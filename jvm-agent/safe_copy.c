/* SPDX-License-Identifier: MIT */
/* process_vm_readv() on our own process copies less where nothing is mapped. A SIGSEGV handler would be HotSpot's. */
#include "safe_copy.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sigsafe.h"

#define PAGE 4096u
#define KERNEL_SIGSET_BYTES 8u

static size_t piece_bytes(uintptr_t from, size_t bytes)
{
	size_t piece = PAGE - from % PAGE;

	return piece < bytes ? piece : bytes;
}

/* getpid() is a system call. In a child of fork() no code of the agent gets here: stay_enter() returns NULL. */
static pid_t own_pid(void)
{
	static pid_t pid;
	pid_t known = __atomic_load_n(&pid, __ATOMIC_RELAXED);

	if (!known) {
		known = getpid();
		__atomic_store_n(&pid, known, __ATOMIC_RELAXED);
	}
	return known;
}

/* Returns the number of bytes copied; -1 with errno set when there are none. */
static ssize_t copy_by_kernel(void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote[SAFE_COPY_MAX / PAGE + 1];
	unsigned long count = 0;

	/* One piece per page: the kernel promises short reads only between pieces. */
	while (bytes) {
		size_t piece = piece_bytes(from, bytes);

		remote[count].iov_base = (void *)from;
		remote[count++].iov_len = piece;
		from += piece;
		bytes -= piece;
	}
	return syscall(SYS_process_vm_readv, own_pid(), &local, 1, remote, count, 0);
}

/* Always fails, as `how` is invalid, but the kernel reads the set first: EINVAL: it could, EFAULT: it could not. */
static bool is_readable(uintptr_t address)
{
	uintptr_t set = address - address % KERNEL_SIGSET_BYTES;

	return syscall(SYS_rt_sigprocmask, -1, set, NULL, KERNEL_SIGSET_BYTES) < 0 && errno == EINVAL;
}

/* Memory that is unmapped after the check would fault; the stacks and JVM structures that are read stay mapped. */
static size_t copy_by_page(unsigned char *to, uintptr_t from, size_t bytes)
{
	size_t copied = 0;

	while (copied < bytes && is_readable(from + copied)) {
		size_t piece = piece_bytes(from + copied, bytes - copied);

		memcpy(to + copied, (const void *)(from + copied), piece);
		copied += piece;
	}
	return copied;
}

size_t safe_copy(void *to, uintptr_t from, size_t bytes)
{
	static bool refused;
	ssize_t copied;

	if (bytes > SAFE_COPY_MAX || from + bytes < from)
		return 0;
	if (__atomic_load_n(&refused, __ATOMIC_RELAXED))
		return copy_by_page(to, from, bytes);
	copied = copy_by_kernel(to, from, bytes);
	/* Seccomp filters of containers (Docker's before 23.0) allow process_vm_readv() only with CAP_SYS_PTRACE. */
	if (copied < 0 && (errno == EPERM || errno == ENOSYS)) {
		__atomic_store_n(&refused, true, __ATOMIC_RELAXED);
		return copy_by_page(to, from, bytes);
	}
	return copied > 0 ? (size_t)copied : 0;
}
