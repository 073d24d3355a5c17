/* SPDX-License-Identifier: MIT */
/*
 * hostile_neighbour ATTACK SECONDS FOLDER COUNT: processes that cost who profiles the host as much as they can, COUNT
 * of them or as said below. FOLDER is writable. Says READY. "victim" is who has to keep his profile: it prints what it
 * has used. For tests/bench/attacks.sh.
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

/* Of those that take all CPU time that they get: what counts is the work that they cause. */
static void storm(int count, void (*work)(int number))
{
	if (nice(19) == 19)
		crowd(count, work);
}

static void sleep_to_the_end(int number)
{
	(void)number;
	while (!is_over())
		rest_ms(2000);
}

static char *path_of(const char *name, int number)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s%d", folder, name, number);
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

/* 512 stacks, which burn and sleep in turn. "CLOCK CPU" in ns now and then, as Victim.java. */
static void victim(int count)
{
	uint64_t told_ns = 0;

	(void)count;
	for (uint64_t way = 0; !is_over(); way++) {
		uint64_t clock_ns = now_ns(CLOCK_REALTIME);

		if (clock_ns - told_ns > 50 * MS) {
			printf("%llu %llu\n", (unsigned long long)clock_ns,
			       (unsigned long long)now_ns(CLOCK_THREAD_CPUTIME_ID));
			fflush(stdout);
			told_ns = clock_ns;
		}
		left(9, way, burn_and_rest);
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
	(void)number;
	while (now_ns(CLOCK_MONOTONIC) < end_ns)
		left(60, (uint64_t)random() << 31 ^ (uint64_t)random(), burn_a_bit);
}

/* ---- the attacks; each is called with COUNT ---- */

/* Processes of 3 s, each with stacks of its own. */
static void stacks(int count)
{
	storm(count, random_stacks);
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

/* Starts itself again with 1.8 MB of arguments. */
static void exec_with_arguments(int number)
{
	char text[16], *arguments[32] = {self, "remap", "1000", (char *)folder, text};
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
	(void)number;
	call_deep(burn_to_the_end);
}

static void deep_burners(int count)
{
	storm(count, burn_deep);
}

static void plain_sleepers(int count)
{
	crowd(count, sleep_to_the_end);
}

/* Two processes that wait for each other. */
static void wait_in_turn(int number)
{
	int there[2], back[2];
	char byte = 0;
	bool is_first;

	(void)number;
	if (pipe(there) || pipe(back))
		return;
	is_first = fork() > 0;
	while (!is_over())
		if (is_first ? write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1
			     : read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
			break;
}

static void switches(int count)
{
	storm(count, wait_in_turn);
}

static void *end_at_once(void *unused)
{
	return unused;
}

static void start_threads(int number)
{
	pthread_t thread;

	(void)number;
	while (!is_over())
		if (!pthread_create(&thread, NULL, end_at_once, NULL))
			pthread_join(thread, NULL);
}

static void short_threads(int count)
{
	storm(count, start_threads);
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
	(void)number;
	while (!is_over()) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void forks(int count)
{
	storm(count, fork_all_the_time);
}

static void exec_all_the_time(int number)
{
	(void)number;
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

static void execs(int count)
{
	storm(count, exec_all_the_time);
}

static void nothing(int count)
{
	(void)count;
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

static void names(int count)
{
	storm(count, rename_all_the_time);
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

static void remaps(int count)
{
	storm(count, remap_all_the_time);
}

static void *wake(void *unused)
{
	while (!is_over())
		rest_ms(200);
	return unused;
}

static void many_threads(int number)
{
	pthread_attr_t attributes;
	pthread_t thread;

	(void)number;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < 500 && !pthread_create(&thread, &attributes, wake, NULL); i++)
		;
	sleep_to_the_end(0);
}

/* 500 threads in each process. */
static void threads(int count)
{
	crowd(count, many_threads);
}

/* Code without a file, in a loop. */
static void run_made_code(void)
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
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, loop, sizeof(loop));
	mprotect(code, PAGE, PROT_READ | PROT_EXEC);
	while (!is_over()) {
		for (int i = 0; i < 20; i++)
			((void (*)(void))(uintptr_t)code)();
		rest_ms(20);
	}
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

static void perf_maps(int count)
{
	crowd(count, endless_map);
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

static void libjvms(int count)
{
	crowd(count, replace_libjvm);
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

static void cgroups(int count)
{
	storm(count, enter_and_leave);
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

static void files(int count)
{
	storm(count, run_crowd);
}

static const struct attack {
	const char *name;
	void (*start)(int count);
} attacks[] = {
	{"victim", victim},
	{"nothing", nothing},
	{"remap", map_and_unmap},
	{"stacks", stacks},
	{"libjvm_sleepers", libjvm_sleepers},
	{"arguments", arguments},
	{"deep_sleepers", deep_sleepers},
	{"mappings", mappings},
	{"forks", forks},
	{"execs", execs},
	{"names", names},
	{"remaps", remaps},
	{"threads", threads},
	{"perf_maps", perf_maps},
	{"counters", counters},
	{"deep_burners", deep_burners},
	{"plain_sleepers", plain_sleepers},
	{"switches", switches},
	{"short_threads", short_threads},
	{"libjvms", libjvms},
	{"cgroups", cgroups},
	{"files", files},
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
		attacks[i].start(atoi(argv[4]));
		puts("READY");
		fflush(stdout);
		if (strcmp(argv[1], "nothing"))
			sleep_to_the_end(0);
		return 0;
	}
	return 2;
}
