/* SPDX-License-Identifier: MIT */
#include "attach/children.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/child.h"
#include "base/packet.h"
#include "base/signals.h"
#include "base/vec.h"
#include "proc/process.h"

#define SOON_STEPS 100
#define STEP_NS NS_PER_MS
#define KILLED_GRACE_NS (200 * NS_PER_MS)

struct leftover {
	pid_t child; /* 0: the child has ended, but something that it started has not */
	int life;
	uid_t uid;
	uint64_t kill_ns;
};

static struct vec(struct leftover) leftovers;

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_usec * NS_PER_US;
}

/* Returns true also when there is no such child any more. */
static bool collect(pid_t child, int *ret_status, uint64_t *ret_cpu_ns)
{
	struct rusage usage = {0};
	pid_t ended = wait4(child, ret_status, WNOHANG, &usage);

	*ret_cpu_ns = timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
	return ended == child || (ended < 0 && errno == ECHILD);
}

bool children_collect_soon(pid_t child, int *ret_status, uint64_t *ret_cpu_ns)
{
	for (int i = 0; i < SOON_STEPS; i++) {
		if (collect(child, ret_status, ret_cpu_ns))
			return true;
		clock_sleep(STEP_NS);
	}
	return false;
}

/* Returns true if no process holds the writing end any more. */
static bool has_ended(int life)
{
	char none;

	return read(life, &none, sizeof(none)) == 0;
}

/* Returns true when the child and everything it started have ended. */
static bool collect_all(struct leftover *leftover)
{
	uint64_t cpu_ns;
	int status;

	if (leftover->child && collect(leftover->child, &status, &cpu_ns))
		leftover->child = 0;
	if (leftover->child || !has_ended(leftover->life))
		return false;
	close(leftover->life);
	return true;
}

void children_leave(pid_t child, int life, uid_t uid, uint64_t kill_ns)
{
	struct leftover leftover = {.child = child, .life = life, .uid = uid, .kill_ns = kill_ns};

	if (collect_all(&leftover) || vec_push(&leftovers, leftover) == 0)
		return;
	close(life); /* out of memory: the child stays a zombie until the loader ends */
	if (leftover.child)
		kill(leftover.child, SIGKILL);
}

void children_collect(uint64_t now_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < leftovers.len; i++) {
		struct leftover *leftover = &leftovers.items[i];

		if (collect_all(leftover))
			continue;
		if (leftover->child && now_ns >= leftover->kill_ns)
			kill(leftover->child, SIGKILL);
		leftovers.items[left++] = *leftover;
	}
	leftovers.len = left;
}

size_t children_left(uid_t uid)
{
	size_t count = 0;

	children_collect(clock_monotonic_ns());
	for (size_t i = 0; i < leftovers.len; i++)
		count += leftovers.items[i].uid == uid;
	return count;
}

void children_wait(void)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < leftovers.len; i++)
		if (leftovers.items[i].kill_ns > last_ns)
			last_ns = leftovers.items[i].kill_ns;
	for (uint64_t now_ns = 0; leftovers.len && now_ns < last_ns + KILLED_GRACE_NS; clock_sleep(STEP_NS)) {
		now_ns = clock_monotonic_ns();
		children_collect(now_ns);
	}
	vec_release(&leftovers);
}

#define LEFT_MAX 8 /* children of one user that did not end */
#define PIECE_MS 1000 /* for each piece, in addition to USER_CHILD_MS for all */

/* A process of root may be root of a container only, so its child has no capability either. */
int children_become(uid_t uid, gid_t gid)
{
	bool is_same = geteuid() == uid && getegid() == gid;

	/* an ordinary user may not set groups, and has only its own */
	if (!is_same && (((geteuid() != uid || !uid) && setgroups(1, &gid) < 0) || setresgid(gid, gid, gid) < 0 ||
			 setresuid(uid, uid, uid) < 0))
		return -errno;
	prctl(PR_SET_DUMPABLE, 0);
	return rights_keep(RIGHTS_NONE);
}

void user_child_answer(int socket, int result)
{
	(void)packet_send(socket, &result, sizeof(result), -1, 0);
}

/* The parent sees the progress by an answer for each piece. */
int user_child_copy(int socket, int from, uint64_t bytes, int to)
{
	int err = 0;

	for (uint64_t at = 0; !err && at < bytes; at += USER_CHILD_PIECE) {
		err = io_copy(from, at, bytes - at < USER_CHILD_PIECE ? bytes - at : USER_CHILD_PIECE, to);
		user_child_answer(socket, USER_CHILD_GOES_ON);
	}
	return err;
}

int user_child_await(const struct user_child *child, uint64_t timeout_ms)
{
	int result, none, ms = timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX;
	ssize_t len = packet_receive(child->socket, &result, sizeof(result), ms, &none);

	if (len == sizeof(result))
		return result;
	return len == -EINTR ? -EINTR : -ETIMEDOUT; /* a child that is killed by its user has not answered either */
}

int user_child_await_copy(const struct user_child *child)
{
	uint64_t until_ns = clock_monotonic_ns() + USER_CHILD_MS * NS_PER_MS, now_ns;
	int result;

	do {
		now_ns = clock_monotonic_ns();
		result = now_ns < until_ns ? user_child_await(child, (until_ns - now_ns) / NS_PER_MS + 1) : -ETIMEDOUT;
		until_ns += PIECE_MS * NS_PER_MS;
		if (until_ns > now_ns + USER_CHILD_MS * NS_PER_MS)
			until_ns = now_ns + USER_CHILD_MS * NS_PER_MS;
	} while (result == USER_CHILD_GOES_ON);
	return result;
}

/* Keeps none of the parent's descriptors: others must see when that has ended. Does not return. */
static void run(int socket, int root, const struct stat *process, user_child_work work, const void *context,
		pid_t parent)
{
	int err = 0;

	child_keep_only(STDERR_FILENO + 1, socket, root < 0 ? socket : root);
	signal(SIGPIPE, SIG_IGN);
	signals_end_with(SIGTERM);
	if (process)
		err = children_become(process->st_uid, process->st_gid);
	child_end_with(parent, SIGTERM);
	if (err < 0)
		user_child_answer(socket, err);
	else
		work(socket, root, context);
	_exit(0);
}

/* `root` and `process` belong to one process. */
static int start(struct user_child *child, int root, const struct stat *process, user_child_work work,
		 const void *context)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child->pid = fork();
	if (!child->pid)
		run(pair[1], root, process, work, context, parent);
	close(pair[1]);
	child->socket = pair[0];
	child->uid = process ? process->st_uid : geteuid();
	if (child->pid > 0)
		return 0;
	child->pid = 0;
	return -EAGAIN;
}

/* Opens nothing that could block: only entries of /proc/PID itself. */
static int open_process(pid_t pid, uint64_t start_ticks, struct stat *ret_process)
{
	struct proc_stat stat;
	char path[32];
	IO_FD(proc) = -1;
	int root;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -ESRCH;
	root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	if (!proc_stat_read(&stat, proc, "stat") && stat.fields[STAT_START] == start_ticks &&
	    !fstat(proc, ret_process))
		return root;
	close(root);
	return -ESRCH;
}

int user_child_start(struct user_child *child, pid_t pid, uint64_t start_ticks, user_child_work work,
		     const void *context)
{
	struct stat process = {.st_uid = geteuid()};
	IO_FD(root) = pid ? open_process(pid, start_ticks, &process) : -1;
	int err;

	*child = (struct user_child)USER_CHILD_NONE;
	if (pid && root < 0)
		return root;
	err = children_left(process.st_uid) < LEFT_MAX ? start(child, root, pid ? &process : NULL, work, context)
						       : -EBUSY;
	if (err)
		user_child_release(child);
	return err;
}

/* With SIGTERM the child removes its temporary file. */
void user_child_release(struct user_child *child)
{
	const int signals[] = {SIGTERM, SIGKILL};
	bool has_ended = !child->pid;
	uint64_t cpu_ns;
	int status;

	for (size_t i = 0; i < 2 && !has_ended; i++) {
		kill(child->pid, signals[i]);
		has_ended = children_collect_soon(child->pid, &status, &cpu_ns);
	}
	if (!has_ended) {
		fcntl(child->socket, F_SETFL, O_NONBLOCK);
		children_leave(child->pid, child->socket, child->uid, clock_monotonic_ns());
		child->socket = -1;
	}
	io_close(&child->socket);
	*child = (struct user_child)USER_CHILD_NONE;
}
