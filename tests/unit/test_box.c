/* SPDX-License-Identifier: MIT */
/* What is refused in a box, and what is not. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/box.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"

#define MB (1ull << 20)

#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static const uint64_t peeked = 0x1234567890abcdef;
static pid_t parent;
static int file, sockets[2], gate[2], unconnected;

/* Runs `work` in a box. Returns the status of waitpid(): 0 if work() returned NULL, else its text was printed. */
static int status_of(unsigned int calls, const struct box_limits *limits, const char *(*work)(void))
{
	int status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		const char *failed;

		signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the other tests here */
		failed = box_enter(calls, limits) ? "box_enter" : box_lacks() ? "box_lacks" : work();

		if (failed)
			(void)!write(STDERR_FILENO, failed, strlen(failed));
		_exit(failed ? 1 : 0);
	}
	assert_int_equal(child_await(child, &status), 0);
	return status;
}

#define REFUSED(call)                                                                                                  \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		if ((long)(call) != -1 || errno != EPERM)                                                              \
			return #call " is not refused\n";                                                              \
	} while (0)

#define WORKS(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return #condition " is not so\n";                                                              \
	} while (0)

static const char *try_what_is_refused(void)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
	const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	char *const words[] = {"/bin/true", NULL};

	REFUSED(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY));
	REFUSED(open("/dev/null", O_WRONLY));
#ifdef SYS_open
	REFUSED(syscall(SYS_open, "/etc/passwd", O_RDONLY));
#endif
	REFUSED(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0));
	REFUSED(syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", NULL, 0));
	REFUSED(mkdir("/tmp/x", 0700));
	REFUSED(unlink("/tmp/x"));
	REFUSED(rename("/tmp/x", "/tmp/y"));
	REFUSED(fchmod(file, 0777));
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0}));
	REFUSED(connect(unconnected, (const struct sockaddr *)&address, sizeof(address)));
	REFUSED(bind(unconnected, (const struct sockaddr *)&address, sizeof(address)));
	REFUSED(execve(words[0], words, words + 1));
	REFUSED(syscall(SYS_execveat, file, "", words, words + 1, AT_EMPTY_PATH));
	REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	REFUSED(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
	REFUSED(kill(getppid(), 0));
	REFUSED(kill(getpid(), 0));
	REFUSED(syscall(SYS_tgkill, getppid(), getppid(), 0));
	REFUSED(syscall(SYS_pidfd_open, getppid(), 0));
	REFUSED(fcntl(file, F_SETOWN, getppid()));
	REFUSED(fork());
	REFUSED(vfork());
	REFUSED(syscall(SYS_clone3, NULL, 0));
	REFUSED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	REFUSED(syscall(SYS_bpf, 0, NULL, 0));
	REFUSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	REFUSED(setrlimit(RLIMIT_CPU, &limit));
	REFUSED(setuid(0));
	REFUSED(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	return NULL;
}

static const char *try_what_is_not(void)
{
	char byte = 0, *memory = malloc(3 << 20);
	struct timespec now;
	struct stat st;

	WORKS(memory);
	memset(memory, 1, 3 << 20);
	WORKS((memory = realloc(memory, 9 << 20)));
	free(memory);
	WORKS(pwrite(file, "abc", 3, 0) == 3);
	WORKS(lseek(file, 1, SEEK_SET) == 1);
	WORKS(read(file, &byte, 1) == 1 && byte == 'b');
	WORKS(!fstat(file, &st) && st.st_size == 3);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
	WORKS(memory != MAP_FAILED && memory[2] == 'c');
	WORKS(!munmap(memory, 4096));
	WORKS(!clock_gettime(CLOCK_MONOTONIC, &now));
	WORKS(fcntl(file, F_GETFL) >= 0);
	return NULL;
}

static const char *talk_and_cut(void)
{
	struct pollfd *none = NULL;

	WORKS(!syscall(SYS_ppoll, none, 0, &(struct timespec){0}, NULL, 0));
	WORKS(send(sockets[0], "x", 1, 0) == 1);
	WORKS(!ftruncate(file, 2));
	return NULL;
}

static const char *try_others_sets(void)
{
	REFUSED(send(sockets[0], "x", 1, 0));
	REFUSED(recv(sockets[0], sockets, 1, MSG_DONTWAIT));
	REFUSED(ftruncate(file, 0));
	return NULL;
}

static const struct box_limits no_limits;

static void strangers_find_nothing(void **state)
{
	if (!IS_SANITIZED)
		assert_int_equal(status_of(BOX_TALK | BOX_OUTPUT, &no_limits, try_what_is_refused), 0);
}

/* Reads the memory of its parent, and of no other. */
static const char *peek(void)
{
	uint64_t found = 0;
	struct iovec to = {&found, sizeof(found)}, from = {(void *)&peeked, sizeof(peeked)};

	WORKS(process_vm_readv(parent, &to, 1, &from, 1, 0) == sizeof(found) && found == peeked);
	REFUSED(process_vm_readv(1, &to, 1, &from, 1, 0));
	REFUSED(process_vm_writev(parent, &to, 1, &from, 1, 0));
	WORKS(alarm(1) == 0 && alarm(0) == 1);
	REFUSED(open("/etc/passwd", O_RDONLY));
	REFUSED(fork());
	REFUSED(kill(parent, 0));
	REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(execl("/bin/true", "true", NULL));
	REFUSED(ptrace(PTRACE_ATTACH, parent, NULL, NULL));
	REFUSED(setuid(1));
	return NULL;
}

static void a_reader_reads_one_process(void **state)
{
	const struct box_limits limits = {.peeked = getpid()};

	parent = limits.peeked;
	if (!IS_SANITIZED)
		assert_int_equal(status_of(BOX_TALK | BOX_PEEK, &limits, peek), 0);
}

static const char *try_as_loader(void)
{
	char *const words[] = {"/bin/true", NULL};
	int fd;

	REFUSED(execve(words[0], words, words + 1));
	if (!IS_SANITIZED)
		REFUSED(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	REFUSED(syscall(SYS_keyctl, 0, 0));
	REFUSED(syscall(SYS_process_vm_writev, getpid(), NULL, 0, NULL, 0, 0));
	REFUSED(syscall(SYS_init_module, NULL, 0, ""));
	REFUSED(syscall(SYS_clock_settime, 0, NULL));
	WORKS((fd = open("/dev/null", O_WRONLY)) >= 0 && !close(fd));
	WORKS((fd = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0 && !close(fd));
	WORKS(setuid(geteuid() + 1) == -1 && errno == EPERM);
	return NULL;
}

static void the_loader_is_narrowed(void **state)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child) {
		/* twice, as in a daemon's second recording */
		bool failed = box_narrow(RIGHT(CAP_KILL)) || box_narrow(RIGHT(CAP_KILL)) || try_as_loader();

		_exit(failed);
	}
	assert_int_equal(child_await(child, &status), 0);
	assert_int_equal(status, 0);
}

/* Landlock refuses with EACCES. */
static const char *try_as_program(void)
{
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(kill(getppid(), 0));
	if (!IS_SANITIZED)
		REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	WORKS(open("/dev/null", O_WRONLY) < 0 && errno == EACCES);
	WORKS(open("/tmp/duet-box", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
	WORKS(open("/etc/passwd", O_RDONLY) >= 0);
	return NULL;
}

static void a_program_reads_alone(void **state)
{
	char *const words[] = {"true", NULL};
	int status = -1;
	pid_t child = fork();

	if (!child) {
		const char *failed = box_enter_program() || box_lacks() ? "box_enter_program" : try_as_program();

		if (failed)
			(void)!write(STDERR_FILENO, failed, strlen(failed));
		else
			execvp(words[0], words);
		_exit(1);
	}
	assert_int_equal(child_await(child, &status), 0);
	assert_int_equal(status, 0);
}

static void work_goes_on(void **state)
{
	assert_int_equal(status_of(0, &no_limits, try_what_is_not), 0);
}

static void each_has_what_it_asked_for(void **state)
{
	assert_int_equal(status_of(BOX_TALK | BOX_OUTPUT, &no_limits, talk_and_cut), 0);
	if (!IS_SANITIZED)
		assert_int_equal(status_of(0, &no_limits, try_others_sets), 0);
}

static const char *call_as_32_bits(void)
{
#ifdef __x86_64__
	long number = 20; /* getpid() */

	__asm__ volatile("int $0x80" : "+a"(number) : : "memory");
#else
	raise(SIGSYS);
#endif
	return "another architecture is not refused\n";
}

static void no_other_architecture(void **state)
{
	int status = status_of(0, &no_limits, call_as_32_bits);

	assert_true(WIFSIGNALED(status));
	if (WTERMSIG(status) == SIGSEGV)
		skip(); /* the kernel has no system calls of 32 bits */
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static const char *end_by_abort(void)
{
	abort();
}

static void a_fault_ends_it(void **state)
{
	int status = status_of(0, &no_limits, end_by_abort);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static const char *take_64_mb(void)
{
	errno = 0;
	WORKS(!malloc(64 * MB) && errno == ENOMEM);
	WORKS(malloc(4 * MB));
	return NULL;
}

static const char *spin(void)
{
	for (volatile int i = 0;; i++)
		;
	return NULL;
}

static void limits_hold(void **state)
{
	int status;

	if (IS_SANITIZED)
		return;
	assert_int_equal(status_of(0, &(struct box_limits){.memory_bytes = 32 * MB}, take_64_mb), 0);
	status = status_of(0, &(struct box_limits){.cpu_ns = NS_PER_MS}, spin);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

static const char *await_memory(void)
{
	char byte;

	WORKS(!malloc(64 * MB));
	WORKS(write(gate[0], "", 1) == 1 && read(gate[0], &byte, 1) == 1);
	WORKS(malloc(64 * MB));
	return NULL;
}

/* Stops a child in a box of 32 MB, looks at it, and lets it go on. */
static void meet_child(void (*look)(pid_t child))
{
	const struct box_limits little = {.memory_bytes = 32 * MB};
	int status = -1;
	pid_t child;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, gate), 0);
	child = fork();
	if (!child)
		_exit(box_enter(BOX_TALK, &little) || await_memory());
	assert_int_equal(read(gate[1], &byte, 1), 1);
	look(child);
	assert_int_equal(write(gate[1], "", 1), 1);
	close(gate[0]);
	close(gate[1]);
	assert_int_equal(child_await(child, &status), 0);
	assert_int_equal(status, 0);
}

static void give_more(pid_t child)
{
	const struct box_limits more = {.memory_bytes = 256 * MB};

	assert_int_equal(box_limit(child, &more), 0);
}

static void look_at_rights(pid_t child)
{
	static const char *const lines[] = {"CapInh:\t0000000000000000\n",
					    "CapPrm:\t0000000000000000\n",
					    "CapEff:\t0000000000000000\n",
					    "NoNewPrivs:\t1\n",
					    "Seccomp:\t2\n",
					    "CapBnd:\t0000000000000000\n"};
	char path[32];
	BUF(status);

	give_more(child);
	snprintf(path, sizeof(path), "/proc/%d/status", child);
	assert_int_equal(io_read_file(AT_FDCWD, path, 8192, &status), 0);
	/* the bounding set is emptied by root alone */
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines) - !!geteuid(); i++)
		assert_non_null(strstr(status.data, lines[i]));
}

static void the_parent_gives_more(void **state)
{
	if (!IS_SANITIZED)
		meet_child(give_more);
}

static void no_right_is_left(void **state)
{
	if (!IS_SANITIZED)
		meet_child(look_at_rights);
}

static void what_is_missing_is_said(void **state)
{
	BUF(text);
	BUF(bare);

	assert_int_equal(box_try(), 0);
	box_describe(0, &text);
	assert_string_equal(text.data, "no capabilities, no new privileges, seccomp, Landlock");
	box_describe(BOX_LACKS_SECCOMP | BOX_LACKS_LANDLOCK, &bare);
	assert_non_null(strstr(bare.data, "without seccomp"));
	assert_non_null(strstr(bare.data, "without Landlock"));
}

static int open_some(void **state)
{
	file = memfd_create("test_box", 0);
	unconnected = socket(AF_UNIX, SOCK_STREAM, 0);
	return file < 0 || unconnected < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_find_nothing),
		cmocka_unit_test(a_reader_reads_one_process),
		cmocka_unit_test(the_loader_is_narrowed),
		cmocka_unit_test(a_program_reads_alone),
		cmocka_unit_test(work_goes_on),
		cmocka_unit_test(each_has_what_it_asked_for),
		cmocka_unit_test(no_other_architecture),
		cmocka_unit_test(a_fault_ends_it),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(the_parent_gives_more),
		cmocka_unit_test(no_right_is_left),
		cmocka_unit_test(what_is_missing_is_said),
	};

	return cmocka_run_group_tests(tests, open_some, NULL);
}
