/* SPDX-License-Identifier: MIT */
/*
 * A process that burns CPU and holds up whoever reads its files or its memory:
 *
 *   hostile_files FOLDER LIBJVM ATTACK     FOLDER: an empty one of root's, LIBJVM: any ELF file of the name libjvm.so
 *   hostile_files --list
 *
 * Started by root; it prepares a FUSE mount for user 65534 in a mount namespace of its own, becomes him, and says
 * "READY PID" with the pid of its FUSE server, which whoever kills the attacker kills too: the requests that it did not
 * answer end with it. For hostile_files.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define LIMIT_S 120 /* seconds after which it ends by itself, if nobody ends it */
#define FILE_BYTES (64 << 10)
#define FILE_NODE 2
#define PAGE 4096ul

/* The requests that the server does not answer from a certain moment on. */
enum silence { ANSWERS, SILENT_READS, SILENT_WRITES, SILENT, SILENT_OF_US };

static struct {
	const char *folder; /* a folder of root's, with "mount" below it */
	const char *libjvm;
	/* Shared with the server: */
	struct {
		_Atomic int silence; /* enum silence */
		_Atomic int withheld; /* number of requests without an answer */
	} *shared;
	char map_path[64];
	unsigned int owner; /* owner of the files, in the server's user namespace */
	char *code; /* anonymous, so that its names are looked up in the perf map */
} self;

static void die(const char *what)
{
	printf("FAILED %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

#include "system/hostile_fuse.h"

/* ---- attacks, as user nobody ---- */

static void *map_remote(size_t bytes, int protection, void *at)
{
	int fd = open(below("mount/libremote.so"), O_RDONLY);
	void *map = fd < 0 ? MAP_FAILED :
			     mmap(at, bytes, protection, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);

	if (map == MAP_FAILED)
		die("mapping a FUSE file");
	return map;
}

static void write_map(const char *path)
{
	FILE *map = fopen(path, "w");

	if (!map)
		die(path);
	fprintf(map, "%lx 1000 jitted\n", (unsigned long)self.code);
	fclose(map);
}

static void lease(const char *path)
{
	int fd = open(path, O_RDONLY);

	signal(SIGIO, SIG_IGN);
	if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		die("F_SETLEASE");
}

static void lease_perf_map(void)
{
	write_map(self.map_path);
	lease(self.map_path);
}

static void lease_by_link(void)
{
	write_map(below("nobody/leased"));
	lease(below("nobody/leased"));
	if (symlink(below("nobody/leased"), self.map_path) < 0)
		die("symlink");
}

/* The code that runs is in a file of the attacker's: a copy of this page. */
static void run_from(const char *path, bool is_leased)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);

	if (fd < 0 || write(fd, self.code, PAGE) != (ssize_t)PAGE)
		die(path);
	close(fd);
	fd = open(path, O_RDONLY);
	self.code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (self.code == MAP_FAILED)
		die(path);
	signal(SIGIO, SIG_IGN);
	if (is_leased && fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		die("F_SETLEASE");
}

static void lease_library(void)
{
	run_from(below("nobody/libleased.so"), true);
}

static void lease_libjvm(void)
{
	run_from(below("nobody/libjvm.so"), true);
}

static void fifo_perf_map(void)
{
	if (mkfifo(self.map_path, 0666) < 0)
		die("mkfifo");
}

/*
 * Names as long as the loader accepts them: some control a terminal, some break a line, some are markup or ill-formed
 * UTF-8.
 */
static void names_perf_map(void)
{
	FILE *file = fopen(self.map_path, "we");

	if (!file)
		die("perf map");
	fprintf(file, "%lx 1 \033[2J\302\233\342\200\256\r</script>;\\\"\300\200\355\240\200\377 1 %04000d\n",
		(unsigned long)(uintptr_t)self.code, 1);
	fclose(file);
}

static void fuse_perf_map(void)
{
	if (symlink(below("mount/perf.map"), self.map_path) < 0)
		die("symlink");
	self.shared->silence = SILENT;
}

/* The file can be opened, but not be read. */
static void fuse_perf_map_reads(void)
{
	fuse_perf_map();
	self.shared->silence = SILENT_READS;
}

static volatile char touched;

static void fuse_library(void)
{
	char *map = map_remote(FILE_BYTES, PROT_READ | PROT_EXEC, NULL);

	for (size_t at = 0; at < FILE_BYTES; at += PAGE)
		touched = map[at];
	self.shared->silence = SILENT;
}

static void fuse_overlay(void)
{
	self.shared->silence = SILENT;
}

/* No other place can be written to and contain code that can be run, so duet makes a place of its own. */
static void fuse_stage(void)
{
	static const char *const others[] = {"/dev/shm", "/var/tmp", "/run"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (mount("tmpfs", others[i], "tmpfs", MS_NOEXEC, NULL) < 0)
			die("mounting a tmpfs");
	self.shared->silence = SILENT_OF_US;
}

/* The page above the first stack, with the name of the program that the kernel put there, and the end of environ. */
static void fuse_stack_end(void)
{
	uintptr_t name = getauxval(AT_EXECFN);

	map_libjvm();
	self.shared->silence = SILENT_READS;
	map_remote(PAGE, PROT_READ | PROT_WRITE, (void *)(name & ~(PAGE - 1)));
}

/* Arguments and environment are in pages of that file: any process may choose the addresses of its own. */
static void move_arguments(void *page)
{
	uintptr_t start = (uintptr_t)page, end = start + PAGE;
	uintptr_t heap = (uintptr_t)sbrk(0);
	struct prctl_mm_map map = {
		.start_code = start,
		.end_code = end,
		.start_data = start,
		.end_data = end,
		.start_brk = heap,
		.brk = heap,
		.start_stack = start,
		.arg_start = start,
		.arg_end = end,
		.env_start = start,
		.env_end = end,
		.exe_fd = (uint32_t)-1,
	};

	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) < 0)
		die("PR_SET_MM");
}

static void fuse_arguments(void)
{
	map_libjvm();
	self.shared->silence = SILENT_READS;
	move_arguments(map_remote(PAGE, PROT_READ | PROT_WRITE, NULL));
}

static void fuse_root(void)
{
	map_libjvm();
	if (chroot(below("mount")) < 0)
		die("chroot");
	self.shared->silence = SILENT;
}

/* Files can be created, but not written to. */
static void fuse_output(void)
{
	self.shared->silence = SILENT_WRITES;
}

static void *asleep_in_read(void *unused)
{
	char byte;
	int fd;

	prctl(PR_SET_NAME, "in_read");
	fd = open(below("mount/file"), O_RDONLY);
	touched = fd >= 0 && read(fd, &byte, 1) == 1;
	return unused;
}

static void *asleep_in_fault(void *map)
{
	prctl(PR_SET_NAME, "in_fault");
	touched = *(volatile char *)map;
	return map;
}

/* One thread asks the server for a page. The others wait for that page, where no signal ends their sleep. */
static void fuse_asleep(void)
{
	char *map = map_remote(PAGE, PROT_READ, NULL);
	void *(*const ways[])(void *) = {asleep_in_read, asleep_in_read, asleep_in_fault};
	pthread_t thread;

	self.shared->silence = SILENT_READS;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (pthread_create(&thread, NULL, ways[i], map))
			die("pthread_create");
		while (!self.shared->withheld)
			usleep(1000);
	}
}

static struct {
	char *page; /* a page that never arrives */
	_Atomic int step; /* 1: one thread waits for the page, 2: another waits for that thread */
	_Atomic pid_t waiting;
} lock;

static void *read_own_memory(void *unused)
{
	int fd = open("/proc/self/mem", O_RDONLY);
	char byte;

	while (lock.step < 1)
		usleep(1000);
	if (pread(fd, &byte, 1, (off_t)(uintptr_t)lock.page) < 0)
		dprintf(STDOUT_FILENO, "FAILED to wait for a page: %s\n", strerror(errno));
	return unused;
}

static void *map_more(void *unused)
{
	while (lock.step < 2)
		usleep(1000);
	lock.waiting = (pid_t)syscall(SYS_gettid);
	mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return unused;
}

/* Does not change the mappings, because that would wait too: no allocation, no growing stack. */
static bool is_waiting(pid_t tid)
{
	char path[64], text[512];
	const char *state;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	state = strrchr(text, ')');
	return state && state[2] == 'D';
}

static void prepare_lock(void)
{
	pthread_t thread;

	lock.page = map_remote(PAGE, PROT_READ, NULL);
	map_libjvm();
	if (pthread_create(&thread, NULL, read_own_memory, NULL) || pthread_create(&thread, NULL, map_more, NULL))
		die("pthread_create");
	self.shared->silence = SILENT_READS;
}

/*
 * One thread waits for a page that does not arrive, while it holds the list of mappings for reading. Another wants to
 * change the list and waits for the first. All who want to read the list wait for the second.
 */
static void hold_lock(void)
{
	lock.step = 1;
	while (!self.shared->withheld)
		usleep(1000);
	lock.step = 2;
	while (!lock.waiting || !is_waiting(lock.waiting))
		usleep(1000);
}

#define MAPPINGS 4000 /* of one file; below what BPF takes of a process */
#define BARE_MAPPINGS 28000 /* and as many between them: near the kernel's limit, vm.max_map_count */

static void map_own_file(void)
{
	static char page[PAGE];
	int fd = open(below("nobody/many"), O_RDWR | O_CREAT, 0755);

	if (fd < 0 || pwrite(fd, page, PAGE, 0) != (ssize_t)PAGE)
		die("writing a file");
	for (int i = 0; i < MAPPINGS; i++)
		if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			die("many mappings");
}

/*
 * One mapping is made and removed without end, and all others have other names each time, so that none was read lately.
 */
static void *change_mappings(void *bare)
{
	char name[64];

	for (unsigned int i = 0;; i++) {
		char *map = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		snprintf(name, sizeof(name), "%060u", i);
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, (char *)bare + i % BARE_MAPPINGS * 2 * PAGE, PAGE, name);
		usleep(100);
		if (i % 2)
			munmap(map, PAGE);
	}
	return NULL;
}

static void many_mappings(void)
{
	pthread_t thread;
	char *bare = mmap(NULL, 2 * BARE_MAPPINGS * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	map_own_file();
	for (size_t i = 0; bare != MAP_FAILED && i < BARE_MAPPINGS; i++)
		if (mprotect(bare + i * 2 * PAGE, PAGE, PROT_READ) < 0)
			die("many mappings");
	if (bare == MAP_FAILED || pthread_create(&thread, NULL, change_mappings, bare))
		die("many mappings");
}

/* ---- */

static const struct attack {
	const char *name;
	void (*run)(void);
	pid_t (*serve)(void); /* becomes user nobody */
	void (*finish)(void); /* called once code runs */
} attacks[] = {
	{.name = "lease_perf_map", .run = lease_perf_map},
	{.name = "lease_by_link", .run = lease_by_link},
	{.name = "lease_library", .run = lease_library},
	{.name = "lease_libjvm", .run = lease_libjvm},
	{.name = "fifo_perf_map", .run = fifo_perf_map},
	{.name = "names_perf_map", .run = names_perf_map},
	{.name = "many_mappings", .run = many_mappings},
	{.name = "fuse_perf_map", .run = fuse_perf_map, .serve = serve_everybody},
	{.name = "fuse_perf_map_reads", .run = fuse_perf_map_reads, .serve = serve_everybody},
	{.name = "fuse_library", .run = fuse_library, .serve = serve_everybody},
	{.name = "fuse_overlay", .run = fuse_overlay, .serve = serve_overlay},
	{.name = "fuse_stage", .run = fuse_stage, .serve = serve_overlay_to_jvm},
	{.name = "fuse_stack_end", .run = fuse_stack_end, .serve = serve_everybody},
	{.name = "fuse_arguments", .run = fuse_arguments, .serve = serve_everybody},
	{.name = "fuse_asleep", .run = fuse_asleep, .serve = serve_everybody},
	{.name = "fuse_root", .run = fuse_root, .serve = serve_alone},
	{.name = "fuse_output", .run = fuse_output, .serve = serve_everybody},
	{.name = "fuse_lock", .run = prepare_lock, .serve = serve_everybody, .finish = hold_lock},
};

/* An endless loop; samples in it are looked up. */
static void make_code(void)
{
#ifdef __x86_64__
	static const unsigned char loop[] = {0xeb, 0xfe};
#else
	static const unsigned char loop[] = {0x00, 0x00, 0x00, 0x14};
#endif
	self.code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (self.code == MAP_FAILED)
		die("mmap");
	memcpy(self.code, loop, sizeof(loop));
}

static void prepare(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("unshare");
	if (mkdir(below("mount"), 0755) < 0 || mkdir(below("empty"), 0755) < 0 || mkdir(below("nobody"), 0755) < 0 ||
	    chown(below("nobody"), NOBODY, NOBODY) < 0)
		die(self.folder);
	self.shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (self.shared == MAP_FAILED)
		die("mmap");
	snprintf(self.map_path, sizeof(self.map_path), "/tmp/perf-%d.map", getpid());
}

static void *burn(void *unused)
{
	((void (*)(void))(uintptr_t)self.code)();
	return NULL;
}

static struct {
	const struct attack *attack;
	pid_t server;
} job;

/* Not on the first stack, whose end may be removed. */
static void *run(void *unused)
{
	pthread_t thread;

	job.attack->run();
	if (pthread_create(&thread, NULL, burn, NULL))
		die("pthread_create");
	if (job.attack->finish)
		job.attack->finish();
	dprintf(STDOUT_FILENO, "READY %d\n", job.server);
	return unused;
}

int main(int argc, char **argv)
{
	size_t count = sizeof(attacks) / sizeof(*attacks), i = 0;
	pthread_t thread;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		for (; i < count; i++)
			puts(attacks[i].name);
	if (argc != 4)
		return argc != 2;
	while (i < count && strcmp(attacks[i].name, argv[3]))
		i++;
	if (i == count)
		return 2;
	alarm(LIMIT_S);
	self.folder = strdup(argv[1]); /* a copy, because the first stack may be removed */
	self.libjvm = strdup(argv[2]);
	prepare();
	make_code();
	job.attack = &attacks[i];
	if (attacks[i].serve)
		job.server = attacks[i].serve();
	else
		become_nobody();
	if (pthread_create(&thread, NULL, run, NULL))
		die("pthread_create");
	for (;;)
		pause();
}
