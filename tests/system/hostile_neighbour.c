/* SPDX-License-Identifier: MIT */
/*
 * hostile_neighbour ATTACK SECONDS FOLDER COUNT: processes that cost who profiles the host as much as they can, COUNT
 * of them or as said below. FOLDER is writable. Says READY. "victim" is who has to keep his profile: it prints what it
 * has used. For hostile_room.sh, hostile_work.sh and tests/bench/attacks.sh.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define MS 1000000ull

static double end_s;
static const char *folder;
static char *self; /* path of this program */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static bool is_over(void)
{
	return (double)now_ns(CLOCK_MONOTONIC) / 1e9 >= end_s;
}

static void rest_ms(unsigned int ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)((ms % 1000) * MS)};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

static void burn_ms(unsigned int ms)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ms * MS;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 20000; i++)
			;
}

/* Starts children that call it; each ends with this process. */
static void crowd(int count, void (*work)(int number))
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(i);
			_exit(0);
		}
		if (pid < 0) {
			perror("fork");
			break;
		}
	}
}

static void sleep_to_the_end(int number)
{
	while (!is_over())
		rest_ms(2000);
}

/* In a folder of each number, so that each file is named as it is. */
static char *path_of(const char *name, int number)
{
	static char path[4096];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s/%d", folder, number);

	mkdir(path, 0755);
	snprintf(path + len, sizeof(path) - len, "/%s", name);
	return path;
}

static const char *c_library(void)
{
	Dl_info info = {0};

	return dladdr((void *)(uintptr_t)fork, &info) ? info.dli_fname : "";
}

/* A few bytes of a file's code, mapped to be run. */
static void *map_code(const char *path, off_t offset, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);

	if (fd >= 0)
		close(fd);
	return at;
}

/* ---- calls that leave one of many stacks ---- */

static volatile unsigned int sink;

static void left(unsigned int depth, uint64_t way, void (*at_end)(void));
static void right(unsigned int depth, uint64_t way, void (*at_end)(void));

static void go_on(unsigned int depth, uint64_t way, void (*at_end)(void))
{
	if (!depth)
		at_end();
	else if (way & 1)
		left(depth - 1, way >> 1, at_end);
	else
		right(depth - 1, way >> 1, at_end);
	sink++; /* not a jump */
}

__attribute__((noinline, noclone)) static void left(unsigned int depth, uint64_t way, void (*at_end)(void))
{
	go_on(depth, way, at_end);
	sink += 1;
}

__attribute__((noinline, noclone)) static void right(unsigned int depth, uint64_t way, void (*at_end)(void))
{
	go_on(depth, way, at_end);
	sink += 2;
}

static void burn_and_rest(void)
{
	burn_ms(4);
	rest_ms(4);
}

/* COUNT stacks, which burn and sleep in turn. "CLOCK CPU" in ns now and then, as Victim.java. */
static void victim(int count)
{
	uint64_t told_ns = 0;

	for (uint64_t way = 0; !is_over(); way++) {
		uint64_t clock_ns = now_ns(CLOCK_REALTIME);

		if (clock_ns - told_ns > 50 * MS) {
			printf("%llu %llu\n", (unsigned long long)clock_ns,
			       (unsigned long long)now_ns(CLOCK_THREAD_CPUTIME_ID));
			fflush(stdout);
			told_ns = clock_ns;
		}
		left(9, way % (uint64_t)count, burn_and_rest);
	}
}

static void burn_a_bit(void)
{
	burn_ms(1);
}

static void random_stacks(int number)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + 3000 * MS;

	srandom((unsigned int)getpid());
	while (now_ns(CLOCK_MONOTONIC) < end_ns)
		left(60, (uint64_t)random() << 31 ^ (uint64_t)random(), burn_a_bit);
}

/* ---- the attacks; each is called with COUNT ---- */

/* Processes of 3 s, each with stacks of its own. */
static void stacks(int count)
{
	crowd(count, random_stacks);
	while (!is_over())
		if (wait(NULL) > 0)
			crowd(1, random_stacks);
}

/* FOLDER/libjvm.so is a real one, but nobody is a JVM. */
static void libjvm_sleepers(int count)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/libjvm.so", folder);
	if (!dlopen(path, RTLD_NOW))
		fprintf(stderr, "%s\n", dlerror());
	crowd(count, sleep_to_the_end);
}

static void map_and_unmap(int number)
{
	for (off_t at = 0; !is_over(); at = (at + (off_t)PAGE) % (1 << 20)) {
		void *code = map_code(path_of("libjvm.so", number), at, PAGE);

		rest_ms(20);
		if (code != MAP_FAILED)
			munmap(code, PAGE);
	}
}

/* Makes code without a file: a loop of some microseconds. The page behind it keeps it apart from the next. */
static void (*make_code(void))(void)
{
	static const unsigned char loop[] = {
#ifdef __x86_64__
		0xb9, 0x00, 0x00, 0x01, 0x00, 0xff,
		0xc9, 0x75, 0xfc, 0xc3
#else
		0x20, 0x00, 0xa0, 0x52, 0x00, 0x04, 0x00, 0x71, 0xe1,
		0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6
#endif
	};
	char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, loop, sizeof(loop));
	__builtin___clear_cache(code, code + sizeof(loop));
	mprotect(code, PAGE, PROT_READ | PROT_EXEC);
	return (void (*)(void))(uintptr_t)code;
}

static void run_made_code(void)
{
	void (*code)(void) = make_code();

	while (!is_over()) {
		for (int i = 0; i < 20; i++)
			code();
		rest_ms(20);
	}
}

/* Each turn has one executable mapping more, up to a thousand. */
static void run_ever_new_code(int number)
{
	map_code(path_of("libjvm.so", number), 0, PAGE);
	for (int turn = 0; !is_over(); turn++) {
		uint64_t end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + 10 * MS;
		void (*code)(void) = make_code();

		while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
			code();
		if (turn % 1000 == 999)
			munmap((void *)(uintptr_t)code, PAGE);
	}
}

/* Starts itself again with 1.8 MB of arguments. */
static void exec_with_arguments(int number)
{
	char text[16], *arguments[32] = {self, "new_code", "1000", (char *)folder, text};
	int count = 5;

	snprintf(text, sizeof(text), "%d", number);
	while (count < 19) {
		arguments[count] = malloc(131000);
		memset(arguments[count], 'x', 130999);
		arguments[count++][130999] = '\0';
	}
	execv(self, arguments);
}

/* Nobody knows their names, which are asked for when their mappings change; each has a "libjvm.so" of 256 MB. */
static void arguments(int count)
{
	for (int i = 0; i < count; i++) {
		int fd = open(path_of("libjvm.so", i), O_CREAT | O_RDWR | O_CLOEXEC, 0644);

		if (fd < 0 || ftruncate(fd, 256 << 20))
			perror("libjvm.so");
		close(fd);
	}
	crowd(count, exec_with_arguments);
}

static void (*at_the_bottom)(void);
static int sleepers;

static void crowd_of_sleepers(void)
{
	crowd(sleepers, sleep_to_the_end);
	puts("READY");
	fflush(stdout);
	sleep_to_the_end(0);
	_exit(0);
}

static unsigned int down(unsigned int frames)
{
	volatile char page[4000];

	page[0] = 1;
	if (!frames)
		at_the_bottom();
	return frames ? down(frames - 1) + (unsigned int)page[0] : 0;
}

static void *dive(void *frames)
{
	sink = down((unsigned int)(uintptr_t)frames);
	return NULL;
}

/* Calls it at the bottom of a stack of 4,000 frames, each on a page of its own. */
static void call_deep(void (*call)(void))
{
	pthread_attr_t attributes;
	pthread_t thread;

	at_the_bottom = call;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 32 << 20);
	if (!pthread_create(&thread, &attributes, dive, (void *)4000ul))
		pthread_join(thread, NULL);
}

/* They share the stack. */
static void deep_sleepers(int count)
{
	sleepers = count;
	call_deep(crowd_of_sleepers);
}

static void burn_to_the_end(void)
{
	while (!is_over())
		burn_ms(1);
}

static void burn_deep(int number)
{
	call_deep(burn_to_the_end);
}

/* Two processes that wait for each other. */
static void wait_in_turn(int number)
{
	int there[2], back[2];
	char byte = 0;
	bool is_first;

	if (pipe(there) || pipe(back))
		return;
	is_first = fork() > 0;
	while (!is_over())
		if (is_first ? write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1
			     : read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
			break;
}

static void *end_at_once(void *unused)
{
	return unused;
}

static void start_threads(int number)
{
	pthread_t thread;

	while (!is_over())
		if (!pthread_create(&thread, NULL, end_at_once, NULL))
			pthread_join(thread, NULL);
}

static void wake_now_and_then(int number)
{
	rest_ms((unsigned int)number * 4);
	while (!is_over()) {
		burn_ms(1);
		rest_ms(2000);
	}
}

/* Parts of the C library that do not touch each other, 4,000 in each process. */
static void mappings(int count)
{
	const char *library = c_library();

	for (int i = 0; i < 4000; i++)
		map_code(library, (off_t)((i % 2 ? 0x30ul : 0x60ul) + (unsigned long)i % 32) * (off_t)PAGE, PAGE);
	crowd(count, wake_now_and_then);
}

static void fork_all_the_time(int number)
{
	while (!is_over()) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void exec_all_the_time(int number)
{
	while (!is_over()) {
		pid_t pid = fork();

		if (!pid) {
			execl(self, self, "nothing", "0", folder, "0", NULL);
			_exit(1);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void nothing(int count)
{
}

static void rename_all_the_time(int number)
{
	char name[16];

	for (unsigned int i = 0; !is_over(); i++) {
		snprintf(name, sizeof(name), "%d-%u", number, i);
		prctl(PR_SET_NAME, name);
		if (i % 64 == 0)
			rest_ms(1);
	}
}

static void remap_all_the_time(int number)
{
	for (off_t at = number; !is_over(); at++) {
		void *code = map_code(c_library(), (off_t)(0x30 + at % 64) * (off_t)PAGE, PAGE);

		if (code != MAP_FAILED)
			munmap(code, PAGE);
		if (at % 64 == 0)
			rest_ms(1);
	}
}

static void *wake(void *unused)
{
	while (!is_over())
		rest_ms(200);
	return unused;
}

/* 500 of them. */
static void many_threads(int number)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < 500 && !pthread_create(&thread, &attributes, wake, NULL); i++)
		;
	sleep_to_the_end(0);
}

/* 16 MB of names, then zeros up to 1 GB; written anew all the time. */
static void endless_map(int number)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (number % 2)
		mkfifo(path, 0644);
	file = number % 2 ? NULL : fopen(path, "w");
	for (unsigned long i = 0; file && i < 400000; i++)
		fprintf(file, "%lx 10 a_name_that_is_longer_%lu\n", i * 16 + 0x10000, i);
	if (file && (fflush(file) || ftruncate(fileno(file), 1 << 30)))
		perror(path);
	if (!fork())
		while (!is_over()) {
			rest_ms(200);
			if (file && (ftruncate(fileno(file), 100) || ftruncate(fileno(file), 1 << 30)))
				break;
		}
	else
		run_made_code();
	unlink(path);
}

static void write_counters(int number)
{
	char path[128], *text = calloc(1, 1 << 20);
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/hsperfdata_%s/%d", strrchr(folder, '/') + 1, getpid());
	file = fopen(path, "w");
	if (file) {
		memcpy(text, "\xca\xfe\xc0\xc0\x01\x02\x00\x01", 8); /* then sizes of 0 */
		fwrite(text, 1 << 20, 1, file);
		fclose(file);
	}
	free(text);
	map_and_unmap(number);
}

/* Files as a JVM writes about itself, below a name that no user has. */
static void counters(int count)
{
	char path[128];

	snprintf(path, sizeof(path), "/tmp/hsperfdata_%s", strrchr(folder, '/') + 1);
	mkdir(path, 0755);
	crowd(count, write_counters);
}

/* A copy of a real libjvm.so each, which is another file all the time. */
static void replace_libjvm(int number)
{
	char path[4096], command[9000];
	int fd;

	snprintf(path, sizeof(path), "%s", path_of("libjvm.so", number));
	snprintf(command, sizeof(command), "cp %s/libjvm.so %s", folder, path);
	if (system(command))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	while (!is_over()) {
		void *code = map_code(path, 0x400000, 64 * PAGE);

		rest_ms(50);
		munmap(code, 64 * PAGE);
		futimens(fd, NULL);
	}
}

static void write_word(const char *path, int number)
{
	char text[16];
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	snprintf(text, sizeof(text), "%d", number);
	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

/* FOLDER/cgroup is the user's own. Each child has a new one, of a container's name, for some ms. */
static void enter_and_leave(int number)
{
	char path[4096], file[4200];

	for (unsigned int i = 0; !is_over(); i++) {
		pid_t pid;

		snprintf(path, sizeof(path), "%s/cgroup/%064x", folder, (unsigned int)number << 20 | i);
		snprintf(file, sizeof(file), "%s/cgroup.procs", path);
		if (mkdir(path, 0755)) {
			perror(path);
			return;
		}
		pid = fork();
		if (!pid) {
			write_word(file, getpid());
			burn_ms(2);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		rmdir(path);
	}
}

/* ---- files that cost a lot to read are hostile_crowd's ---- */

static void run_crowd(int number)
{
	char program[4096], file[4096];

	snprintf(program, sizeof(program), "%s", self);
	strcpy(strrchr(program, '/') + 1, "hostile_crowd");
	snprintf(file, sizeof(file), "%s", path_of("file", number));
	execl(program, program, "1000", file, NULL);
}

static const struct attack {
	const char *name;
	void (*start)(int count);
	void (*each)(int number);
} attacks[] = {
	{"victim", .start = victim},
	{"nothing", .start = nothing},
	{"new_code", .start = run_ever_new_code},
	{"stacks", .start = stacks},
	{"libjvm_sleepers", .start = libjvm_sleepers},
	{"arguments", .start = arguments},
	{"deep_sleepers", .start = deep_sleepers},
	{"mappings", .start = mappings},
	{"forks", .each = fork_all_the_time},
	{"execs", .each = exec_all_the_time},
	{"names", .each = rename_all_the_time},
	{"remaps", .each = remap_all_the_time},
	{"threads", .each = many_threads},
	{"perf_maps", .each = endless_map},
	{"counters", .start = counters},
	{"deep_burners", .each = burn_deep},
	{"plain_sleepers", .each = sleep_to_the_end},
	{"switches", .each = wait_in_turn},
	{"short_threads", .each = start_threads},
	{"libjvms", .each = replace_libjvm},
	{"cgroups", .each = enter_and_leave},
	{"files", .each = run_crowd},
};

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	self = argv[0];
	folder = argv[3];
	end_s = (double)now_ns(CLOCK_MONOTONIC) / 1e9 + atof(argv[2]);
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		if (strcmp(attacks[i].name, argv[1]))
			continue;
		if (!strcmp(argv[1], "stacks") || !strcmp(argv[1], "victim")) {
			puts("READY");
			fflush(stdout);
		}
		if (attacks[i].each)
			crowd(atoi(argv[4]), attacks[i].each);
		else
			attacks[i].start(atoi(argv[4]));
		puts("READY");
		fflush(stdout);
		if (strcmp(argv[1], "nothing"))
			sleep_to_the_end(0);
		return 0;
	}
	return 2;
}
