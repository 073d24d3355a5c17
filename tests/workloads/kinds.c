/* SPDX-License-Identifier: MIT */
/*
 * One thread for each kind of wait, which never ends. Says "KIND NAME STATE" for each: the thread's name, and what
 * duet must say that it waits for. Kinds that this kernel or container refuses have no line. Then says READY, and
 * ENDED NAME if a wait ends.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOUR 3600
#define PAGE 4096

static char files[] = "/tmp/duet-kinds.XXXXXX";
static char room[1 << 20];

/* ---- each returns when the wait has ended, or is refused ---- */

static void in_flock(void)
{
	flock(open(files, O_RDWR | O_CLOEXEC), LOCK_EX); /* main() has another description with the lock */
}

static void in_fcntl(void)
{
	struct flock whole = {.l_type = F_WRLCK};

	fcntl(open(files, O_RDWR | O_CLOEXEC), F_SETLKW, &whole); /* the child of main() has it */
}

static void in_eventfd(void)
{
	(void)!read(eventfd(0, EFD_CLOEXEC), room, 8);
}

static void in_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	(void)!read(signalfd(-1, &set, SFD_CLOEXEC), room, 128);
}

static void in_timerfd(void)
{
	const struct itimerspec late = {.it_value = {HOUR, 0}};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	timerfd_settime(timer, 0, &late, NULL);
	(void)!read(timer, room, 8);
}

static void in_inotify(void)
{
	(void)!read(inotify_init1(IN_CLOEXEC), room, PAGE);
}

static void in_semaphore(void)
{
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	sem_wait(&semaphore);
}

static void in_mutex(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&mutex);
}

static void in_semop(void)
{
	struct sembuf take = {.sem_op = -1};
	int semaphore = semget(IPC_PRIVATE, 1, 0600);

	semctl(semaphore, 0, SETVAL, 0);
	semop(semaphore, &take, 1);
}

static void in_msgrcv(void)
{
	msgrcv(msgget(IPC_PRIVATE, 0600), room, 8, 0, 0);
}

static void in_pipe(void)
{
	int ends[2];

	if (!pipe(ends))
		(void)!read(ends[0], room, 1);
}

static void in_full_pipe(void)
{
	int ends[2];

	if (!pipe(ends))
		(void)!write(ends[1], room, sizeof(room));
}

static void in_accept(void)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	listen(listener, 1);
	accept(listener, NULL, NULL);
}

static void in_recv(void)
{
	int pair[2];

	if (!socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		recv(pair[0], room, 1, 0);
}

static void in_full_datagram(void)
{
	int pair[2], bytes = 1;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	while (send(pair[0], room, 2000, 0) > 0)
		;
}

static void in_full_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	if (master < 0 || unlockpt(master))
		return;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	while (write(slave, room, PAGE) > 0)
		;
}

static void in_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &event);
	epoll_wait(epoll, &event, 1, -1);
}

static void in_poll(void)
{
	poll(NULL, 0, -1);
}

static void in_select(void)
{
	select(0, NULL, NULL, NULL, NULL);
}

static void in_nanosleep(void)
{
	const struct timespec late = {HOUR, 0};

	nanosleep(&late, NULL);
}

static void in_clock(void)
{
	struct timespec late;

	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += HOUR;
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &late, NULL);
}

static void in_sigwait(void)
{
	sigset_t set;
	int signo;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	sigwait(&set, &signo);
}

static void in_sigsuspend(void)
{
	sigset_t set;

	sigfillset(&set);
	sigsuspend(&set);
}

static void until_the_parent_ends(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void in_wait(void)
{
	pid_t child = fork();

	if (!child)
		until_the_parent_ends();
	waitpid(child, NULL, 0);
}

static void in_vfork(void)
{
	/* The child borrows the parent's memory and does nothing but system calls. */
	if (!vfork())
		until_the_parent_ends();
}

/* A thread of the kernel's, which has no user mode, waits for work of this ring: iou-sqp-TID. */
static void in_ring(void)
{
	struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 1};
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);

	syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static void in_fault(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	range.range.start = (uintptr_t)page;
	range.range.len = PAGE;
	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range))
		room[0] = *page;
}

/* ---- */

struct kind {
	const char *name;
	void (*wait)(void);
	const char *state;
	volatile int has_ended;
};

static struct kind kinds[] = {
	{"in_flock", in_flock, "file lock", 0},
	{"in_fcntl", in_fcntl, "file lock", 0},
	{"in_eventfd", in_eventfd, "eventfd", 0},
	{"in_signalfd", in_signalfd, "signal", 0},
	{"in_timerfd", in_timerfd, "sleep", 0},
	{"in_inotify", in_inotify, "file events", 0},
	{"in_semaphore", in_semaphore, "futex", 0},
	{"in_mutex", in_mutex, "futex", 0},
	{"in_semop", in_semop, "semaphore", 0},
	{"in_msgrcv", in_msgrcv, "message queue", 0},
	{"in_pipe", in_pipe, "pipe", 0},
	{"in_full_pipe", in_full_pipe, "pipe", 0},
	{"in_accept", in_accept, "socket", 0},
	{"in_recv", in_recv, "socket", 0},
	{"in_full_dgram", in_full_datagram, "socket", 0},
	{"in_full_tty", in_full_terminal, "terminal", 0},
	{"in_epoll", in_epoll, "epoll", 0},
	{"in_poll", in_poll, "poll", 0},
	{"in_select", in_select, "poll", 0},
	{"in_nanosleep", in_nanosleep, "sleep", 0},
	{"in_clock", in_clock, "sleep", 0},
	{"in_sigwait", in_sigwait, "signal", 0},
	{"in_sigsuspend", in_sigsuspend, "signal", 0},
	{"in_wait", in_wait, "child", 0},
	{"in_vfork", in_vfork, "child", 0},
	{"in_ring", in_ring, "io", 0},
	{"in_fault", in_fault, "page fault", 0},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *run(void *context)
{
	struct kind *kind = context;

	pthread_setname_np(pthread_self(), kind->name);
	kind->wait();
	kind->has_ended = 1;
	printf("ENDED %s\n", kind->name);
	return NULL;
}

/* A record lock is between processes, so a child has it. */
static void lock_the_file(void)
{
	int fd = mkstemp(files);
	struct flock whole = {.l_type = F_WRLCK};

	flock(fd, LOCK_EX);
	if (!fork()) {
		fcntl(open(files, O_RDWR | O_CLOEXEC), F_SETLK, &whole);
		until_the_parent_ends();
	}
	usleep(100000);
}

int main(void)
{
	pthread_t thread;
	sigset_t set;

	setvbuf(stdout, NULL, _IOLBF, 0);
	(void)!unshare(CLONE_NEWIPC); /* the semaphore and the queue end with the process */
	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	lock_the_file();
	for (size_t i = 0; i < KINDS; i++)
		if (pthread_create(&thread, NULL, run, &kinds[i]))
			return 1;
	usleep(500000);
	unlink(files);
	for (size_t i = 0; i < KINDS; i++)
		if (!kinds[i].has_ended)
			printf("KIND %s [%s]\n", kinds[i].name, kinds[i].state);
	puts("READY");
	pause();
	return 0;
}
