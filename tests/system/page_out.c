/* SPDX-License-Identifier: MIT */
/* page_out PID...: moves all memory of these processes out to swap, over and over; for root, with swap. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

#define PAUSE_US 20000

/*
 * Pages that cannot be moved out, such as the vvar page, are not a failure. Returns false if the kernel cannot do this.
 */
static int put_out(pid_t pid, int pidfd)
{
	char path[32], line[4096 + 128];
	unsigned long from, to;
	struct iovec range;
	int done = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		range = (struct iovec){(void *)from, to - from};
		done |= syscall(SYS_process_madvise, pidfd, &range, 1, MADV_PAGEOUT, 0) > 0;
	}
	if (maps)
		fclose(maps);
	return done;
}

int main(int argc, char **argv)
{
	int pidfds[8];

	for (int i = 1; i < argc && i < 8; i++)
		pidfds[i] = (int)syscall(SYS_pidfd_open, atoi(argv[i]), 0);
	for (int round = 0;; round++) {
		for (int i = 1; i < argc && i < 8; i++)
			if (!put_out(atoi(argv[i]), pidfds[i]) && !round)
				return 1;
		usleep(PAUSE_US);
	}
}
