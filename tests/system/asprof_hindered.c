/* SPDX-License-Identifier: MIT */
/*
 *   asprof_hindered LIBRARY HOW FILE
 *
 * A program that drives libasyncProfiler.so by its C functions, and makes that hard: see the rows of `ways`. Prints a
 * line for each call, with its name and what it has answered; then how many descriptors and threads it has more than
 * before, and its children.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_BYTES (64 << 10)

typedef const char *(*error_function)(const char *error);
typedef const char *(*execute_function)(const char *command, void (*write)(const char *, size_t));

static execute_function execute;
static error_function text_of;
static const char *file;
static char written[256];
static volatile unsigned long sink;

static void keep(const char *text, size_t bytes)
{
	snprintf(written, sizeof(written), "%.*s", (int)bytes, text);
}

static void tell(const char *what, const char *command)
{
	const char *error;

	written[0] = '\0';
	error = execute(command, keep);
	printf("%s: %.*s\n", what, (int)strcspn(error ? text_of(error) : written, "\n"),
	       error ? text_of(error) : written);
	fflush(stdout);
}

static __attribute__((noinline)) void spend(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 2;

	while (clock() < end)
		for (int i = 0; i < 1000; i++)
			sink++;
}

static void start(const char *what)
{
	tell(what, "start,event=cpu,interval=1ms");
}

static void stop(const char *what)
{
	char command[4096];

	snprintf(command, sizeof(command), "stop,collapsed,file=%s", file);
	tell(what, command);
}

/* ---- ways ---- */

static void plain(void)
{
	start("start");
	spend();
	stop("stop");
}

/* No process of ours may execute a program any more. */
static void without_exec(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		printf("skip: this kernel has no seccomp\n");
		return;
	}
	start("start");
	stop("stop");
	start("again");
}

static void with_closed(void)
{
	start("start");
	spend();
	syscall(SYS_close_range, 3, ~0u, 0);
	stop("closed");
	start("start anew");
	spend();
	stop("stop anew");
}

static void with_child(void)
{
	pid_t child;

	start("start");
	child = fork();
	if (!child) {
		tell("status of the child", "status");
		start("start of the child");
		spend();
		tell("stop of the child", "stop");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	spend();
	stop("stop");
}

/* As daemon(3) does. The test waits until the file of the parent, and then that of the daemon, are there. */
static void as_daemon(void)
{
	start("start");
	spend();
	if (fork())
		_exit(0);
	setsid();
	if (fork())
		_exit(0);
	start("start of the daemon");
	spend();
	stop("stop of the daemon");
}

static void with_long_arguments(void)
{
	static const size_t sizes[] = {LONG_BYTES, 4 * LONG_BYTES};
	char *command = malloc(4 * LONG_BYTES + 1);

	for (size_t i = 0; command && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(command, 'x', sizes[i]);
		memcpy(command, "start,event=cpu,interval=1ms,title=", strlen("start,event=cpu,interval=1ms,title="));
		command[sizes[i]] = '\0';
		tell(i ? "start of 256 kB" : "start of 64 kB", command);
		spend();
		stop(i ? "stop of 256 kB" : "stop of 64 kB");
	}
	memset(command, ',', LONG_BYTES);
	command[LONG_BYTES] = '\0';
	tell("commas", command);
	free(command);
}

/* The script takes away what the program needs, and puts a line into our input. */
static void on_demand(void)
{
	puts("READY");
	fflush(stdout);
	(void)!getchar();
	start("start");
	(void)!getchar();
	start("start anew");
	spend();
	stop("stop anew");
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{"plain", plain},      {"exec", without_exec},	      {"closed", with_closed}, {"fork", with_child},
	{"daemon", as_daemon}, {"long", with_long_arguments}, {"demand", on_demand},
};

/* ---- what is left ---- */

static int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static int held(void)
{
	return count_entries("/proc/self/fd") + count_entries("/proc/self/task");
}

int main(int argc, char **argv)
{
	void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*init)(void) = library ? (void (*)(void))(uintptr_t)dlsym(library, "asprof_init") : NULL;
	int before;

	execute = library ? (execute_function)(uintptr_t)dlsym(library, "asprof_execute") : NULL;
	text_of = library ? (error_function)(uintptr_t)dlsym(library, "asprof_error_str") : NULL;
	if (!init || !execute || !text_of) {
		fprintf(stderr, "the library or a function is missing: %s\n", dlerror());
		return 1;
	}
	init();
	file = argv[3];
	before = held();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, argv[2]))
			ways[i].run();
	printf("HELD %d\n", held() - before);
	printf("CHILDREN %d\n", waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD ? 0 : 1);
	return 0;
}
