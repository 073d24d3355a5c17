/* SPDX-License-Identifier: MIT */
#include "attach/user_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/children.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/packet.h"
#include "proc/process.h"

#define LEFT_MAX 8 /* children of one user that did not end */

/* ---- the child ---- */

/* A process of root may be root of a container only, so its child has no capability either. */
static int become(const struct stat *process)
{
	bool is_same = geteuid() == process->st_uid && getegid() == process->st_gid;

	if (!is_same &&
	    (setgroups(1, &process->st_gid) < 0 || setresgid(process->st_gid, process->st_gid, process->st_gid) < 0 ||
	     setresuid(process->st_uid, process->st_uid, process->st_uid) < 0))
		return -errno;
	prctl(PR_SET_DUMPABLE, 0); /* its user must not be able to trace this one */
	return rights_keep(RIGHTS_NONE);
}

void user_child_answer(int socket, int result)
{
	(void)packet_send(socket, &result, sizeof(result), -1, 0);
}

/* ---- the parent ---- */

int user_child_await(const struct user_child *child, uint64_t timeout_ms)
{
	int result, none, ms = timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX;

	if (packet_receive(child->socket, &result, sizeof(result), ms, &none) != sizeof(result))
		return -ETIMEDOUT; /* a child that is killed by its user has not answered either */
	return result;
}

/* `root` and `process` belong to one process. */
static int start(struct user_child *child, int root, const struct stat *process, user_child_work work,
		 const void *context)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child->pid = fork();
	if (!child->pid) {
		int err;

		signal(SIGPIPE, SIG_IGN);
		close(pair[0]);
		err = become(process);
		if (err < 0)
			user_child_answer(pair[1], err);
		else
			work(pair[1], root, context);
		_exit(0);
	}
	close(pair[1]);
	child->socket = pair[0];
	child->uid = process->st_uid;
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
	int proc, root = -1, err = -ESRCH;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -ESRCH;
	root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		err = -errno;
	else if (!proc_stat_read(&stat, proc, "stat") && stat.fields[STAT_START] == start_ticks &&
		 !fstat(proc, ret_process))
		err = 0;
	if (err && root >= 0)
		close(root);
	close(proc);
	return err ? err : root;
}

int user_child_start(struct user_child *child, pid_t pid, uint64_t start_ticks, user_child_work work,
		     const void *context)
{
	struct stat process;
	int err, root = open_process(pid, start_ticks, &process);

	*child = (struct user_child)USER_CHILD_NONE;
	if (root < 0)
		return root;
	children_collect(clock_monotonic_ns());
	err = children_left(process.st_uid) < LEFT_MAX ? start(child, root, &process, work, context) : -EBUSY;
	close(root);
	if (err)
		user_child_release(child);
	return err;
}

void user_child_release(struct user_child *child)
{
	uint64_t cpu_ns;
	int status;

	if (child->pid) {
		kill(child->pid, SIGKILL);
		fcntl(child->socket, F_SETFL, O_NONBLOCK);
		if (!children_collect_soon(child->pid, &status, &cpu_ns)) {
			children_leave(child->pid, child->socket, child->uid, clock_monotonic_ns());
			child->socket = -1;
		}
	}
	if (child->socket >= 0)
		close(child->socket);
	*child = (struct user_child)USER_CHILD_NONE;
}
