/* SPDX-License-Identifier: MIT */
/*
 * throng threads COUNT | forks SECONDS | execs SECONDS: what a host may be full of. "threads": so many in one process,
 * each of which works for a moment now and then, until it is killed; "READY n" once they are there. "forks" and
 * "execs": children one after the other, as fast as it goes; then "CHILDREN n".
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 4096 /* these threads make no libc call that needs more stack */
#define SHARED (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/*
 * All threads together take half a CPU, however many they are. If more of them wanted to run than there are CPUs,
 * everything else on the machine would wait for its turn, including the loader and the test.
 */
#define A_SECOND 12000

static int idle(void *rest)
{
	for (;;) {
		for (volatile int i = 0; i < 20000; i++)
			;
		syscall(SYS_nanosleep, rest, NULL);
	}
	return 0;
}

static void threads(long want)
{
	char *stacks = mmap(NULL, STACK_BYTES * (size_t)want, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct timespec rest = {.tv_sec = want > 2 * A_SECOND ? want / A_SECOND : 2};
	long count = 0;

	if (stacks == MAP_FAILED)
		return;
	while (count < want && clone(idle, stacks + STACK_BYTES * (count + 1), SHARED, &rest) > 0)
		count++;
	printf("READY %ld\n", count);
	fflush(stdout);
	pause();
}

static void children(long seconds, int execs)
{
	time_t end = time(NULL) + seconds;
	long count = 0;

	while (time(NULL) < end) {
		pid_t pid = fork();

		if (!pid && execs)
			execl("/bin/true", "true", (char *)NULL);
		if (!pid)
			_exit(0);
		count += pid > 0 && waitpid(pid, NULL, 0) == pid;
	}
	printf("CHILDREN %ld\n", count);
}

int main(int argc, char **argv)
{
	long number = argc > 2 ? atol(argv[2]) : 1;

	if (argc > 1 && !strcmp(argv[1], "threads"))
		threads(number);
	else
		children(number, argc > 1 && !strcmp(argv[1], "execs"));
	return 0;
}
