/* SPDX-License-Identifier: MIT */
/*
 * Processes that make a profiler work for nothing, for SECONDS. Prints READY. For hostile_work.sh.
 *
 *   hostile_work jvms COUNT SECONDS LIBJVM    sleep with libjvm.so loaded; none is a JVM
 *   hostile_work names COUNT SECONDS FILE     run with 2 MB of arguments, FILE mapped, and ever new mappings
 *   hostile_work deep COUNT SECONDS FRAMES    sleep with so many frames, each on a page of its own
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define ARGUMENTS 14
#define ARGUMENT_BYTES 131000
#define STACK_BYTES ((size_t)64 << 20)

static time_t end;
static int frames;

static void sleep_on(void)
{
	while (time(NULL) < end)
		sleep(1);
}

static int load(const char *libjvm)
{
	if (!dlopen(libjvm, RTLD_NOW))
		return 1;
	sleep_on();
	return 0;
}

/* Each turn has one executable mapping more, up to a thousand. */
static int change_mappings(const char *file)
{
	int fd = open(file, O_RDONLY);

	if (fd < 0 || mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	for (int turn = 0; time(NULL) < end; turn++) {
		char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		void (*function)(void);

		if (code == MAP_FAILED)
			return 1;
		munmap(code + PAGE, PAGE); /* so that it does not become one with the next */
#ifdef __x86_64__
		code[0] = (char)0xc3;
#else
		memcpy(code, "\xc0\x03\x5f\xd6", 4);
#endif
		__builtin___clear_cache(code, code + 4);
		memcpy(&function, &code, sizeof(code));
		for (clock_t until = clock() + CLOCKS_PER_SEC / 100; clock() < until;)
			for (int i = 0; i < 100000; i++)
				function();
		if (turn % 1000 == 999)
			munmap(code, PAGE);
	}
	return 0;
}

static int take_arguments(char **argv)
{
	static char argument[ARGUMENT_BYTES];
	char *all[ARGUMENTS + 6] = {argv[0], "named", "1", argv[3], argv[4]};

	memset(argument, 'x', sizeof(argument) - 1);
	for (int i = 0; i < ARGUMENTS; i++)
		all[5 + i] = argument;
	execv("/proc/self/exe", all);
	return 1;
}

__attribute__((noinline)) static int down(int left)
{
	volatile char page[PAGE - 64];

	page[0] = 1;
	if (left)
		return down(left - 1) + page[0];
	sleep_on();
	return 0;
}

static void on_signal(int signo)
{
	(void)signo;
	down(frames);
}

static int go_deep(const char *depth)
{
	stack_t stack = {.ss_size = STACK_BYTES};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	frames = atoi(depth);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		return 1;
	return raise(SIGUSR1);
}

static int run(char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	switch (argv[1][0]) {
	case 'j':
		return load(argv[4]);
	case 'd':
		return go_deep(argv[4]);
	default:
		return argv[1][4] == 'd' ? change_mappings(argv[4]) : take_arguments(argv);
	}
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	end = time(NULL) + atoi(argv[3]);
	if (!strcmp(argv[1], "named"))
		return run(argv);
	for (int i = 0; i < atoi(argv[2]); i++)
		if (!fork())
			_exit(run(argv));
	puts("READY");
	fflush(stdout);
	while (wait(NULL) > 0)
		;
	return 0;
}
