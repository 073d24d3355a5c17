/* SPDX-License-Identifier: MIT */
/*
 *   refuse EPERM|ENOSYS CALL... -- COMMAND [ARGS...]
 *
 * Runs a command under a seccomp filter that refuses these system calls (bpf,
 * perf_event_open, process_vm_readv), as container runtimes do. Exit code 77 when the kernel has no seccomp.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 8
#define SKIPPED 77

static const struct {
	const char *name;
	int number;
} calls[] = {
	{"bpf", SYS_bpf},
	{"perf_event_open", SYS_perf_event_open},
	{"process_vm_readv", SYS_process_vm_readv},
};

/* -1 when there is no such name. */
static int call_number(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	return -1;
}

/* One comparison a call; each that matches jumps to the refusal behind the permission. */
static int install(const int *numbers, int count, int error)
{
	struct sock_filter filter[CALLS_MAX + 3];
	struct sock_fprog program = {.len = (unsigned short)(count + 3), .filter = filter};

	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++)
		filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)numbers[i],
							      (__u8)(count - i), 0);
	filter[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (__u32)error);
	/* Without no_new_privs only root may install a filter. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	int numbers[CALLS_MAX], count = 0, at = 2, err;

	for (; at < argc && strcmp(argv[at], "--") && count < CALLS_MAX; at++) {
		numbers[count] = call_number(argv[at]);
		if (numbers[count++] < 0)
			break;
	}
	if (at + 1 >= argc || strcmp(argv[at], "--")) {
		fprintf(stderr, "usage: %s EPERM|ENOSYS bpf|perf_event_open|process_vm_readv... -- COMMAND...\n",
			argv[0]);
		return 2;
	}
	err = install(numbers, count, strcmp(argv[1], "ENOSYS") ? EPERM : ENOSYS);
	if (err < 0) {
		fprintf(stderr, "refuse: no seccomp filter: %s\n", strerror(-err));
		return SKIPPED;
	}
	execvp(argv[at + 1], argv + at + 1);
	fprintf(stderr, "refuse: %s: %s\n", argv[at + 1], strerror(errno));
	return 127;
}
