/* SPDX-License-Identifier: MIT */
#include "attach/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/maps.h"
#include "proc/process.h"

#define STATUS_MAX (64u << 10)

static volatile sig_atomic_t cancelled;

void visit_cancel(int signo)
{
	cancelled = 1;
}

int visit_fail(struct visit *visit, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(visit->why, sizeof(visit->why), format, args);
	va_end(args);
	return error;
}

static int fail_gone(struct visit *visit)
{
	return visit_fail(visit, -ESRCH, "process %d exited: there is nothing to attach to", visit->target->pid);
}

static int fail_open(struct visit *visit, int error, const char *what)
{
	const struct attach_target *target = visit->target;

	if (error == -ENOENT || error == -ESRCH)
		return fail_gone(visit);
	if ((error == -EACCES || error == -EPERM) && geteuid() != target->uid && geteuid() != 0)
		return visit_fail(visit, -EPERM, "process %d belongs to user %u: run duet as that user or as root",
				  target->pid, target->uid);
	/* Another user's, with capabilities that we lack, or not dumpable: ptrace(2), "access mode checking". */
	if (error == -EACCES || error == -EPERM)
		return visit_fail(visit, -EPERM, "process %d cannot be inspected: give duet CAP_SYS_PTRACE",
				  target->pid);
	return visit_fail(visit, error, "cannot open /proc/%d/%s: %s", target->pid, what, strerror(-error));
}

/* Opens the descriptors before start_ticks is compared, so that both belong to the same process. */
static int open_proc(struct visit *visit)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", visit->target->pid);
	visit->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (visit->proc < 0 && errno == ENOENT)
		return visit_fail(visit, -ESRCH, "there is no process %d", visit->target->pid);
	if (visit->proc < 0)
		return fail_open(visit, -errno, "");
	visit->stat = openat(visit->proc, "stat", O_RDONLY | O_CLOEXEC);
	visit->status = openat(visit->proc, "status", O_RDONLY | O_CLOEXEC);
	return visit->stat < 0 || visit->status < 0 ? fail_open(visit, -errno, "stat") : 0;
}

int visit_open(struct visit *visit, const struct attach_target *target, uint64_t deadline_ns)
{
	int err;

	*visit = (struct visit){.target = target, .deadline_ns = deadline_ns};
	cgroup_freezer_open(&visit->freezer, target->pid);
	visit->proc = visit->root = visit->cwd = visit->stat = visit->status = -1;
	err = open_proc(visit);
	if (!err)
		err = visit_check(visit);
	if (err)
		return err;
	visit->root = openat(visit->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (visit->root < 0)
		return fail_open(visit, -errno, "root");
	visit->cwd = openat(visit->proc, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

void visit_release(struct visit *visit)
{
	int fds[] = {visit->proc, visit->root, visit->cwd, visit->stat, visit->status};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		io_close(&fds[i]);
	cgroup_freezer_release(&visit->freezer);
}

int visit_check(struct visit *visit)
{
	pid_t pid = visit->target->pid;
	struct proc_stat stat;
	char state;

	if (proc_stat_read_again(&stat, visit->stat) < 0)
		return fail_gone(visit);
	state = stat.state;
	if (stat.fields[STAT_START] != visit->target->start_ticks)
		return visit_fail(visit, -ESRCH, "process %d exited and its pid was reused: look up its new pid", pid);
	if (state == 'Z' || state == 'X')
		return fail_gone(visit);
	if (state == 'T')
		return visit_fail(visit, -EAGAIN, "JVM %d is stopped (SIGSTOP): resume it with kill -CONT %d", pid,
				  pid);
	if (state == 't')
		return visit_fail(visit, -EAGAIN, "JVM %d is held by a debugger: let it continue first", pid);
	if (cgroup_is_frozen(&visit->freezer))
		return visit_fail(visit, -EAGAIN, "JVM %d is frozen with its cgroup, as by docker pause: thaw it first",
				  pid);
	return 0;
}

static bool maps_openj9(const struct maps *maps)
{
	for (size_t i = 0; i < maps->list.len; i++)
		if (strstr(maps->list.items[i].path, "/libj9vm"))
			return true;
	return false;
}

int visit_check_hotspot(struct visit *visit)
{
	BUF(comm);
	struct maps maps = {0};
	pid_t pid = visit->target->pid;
	const char *foreign = machine_foreign(pid);
	int err;

	err = maps_read(&maps, CHARGE_OWN(pid));
	if (err) {
		err = fail_open(visit, err, "maps");
		goto out;
	}
	if (maps_openj9(&maps)) { /* OpenJ9 has a libjvm.so too */
		err = visit_fail(visit, -ENOTSUP, "JVM %d is an OpenJ9 VM, not HotSpot: duet cannot attach to it", pid);
		goto out;
	}
	if (maps_libjvm(&maps)) {
		if (foreign)
			err = visit_fail(visit, -ENOEXEC, "JVM %d: %s, which cannot load the agent", pid, foreign);
		goto out;
	}
	io_read_file(visit->proc, "comm", 64, &comm);
	comm.data[strcspn(comm.data, "\n")] = '\0';
	err = visit_fail(visit, -ENOTSUP, "process %d (%s) is not a HotSpot JVM: it maps no libjvm.so", pid, comm.data);
out:
	maps_release(&maps);
	return err;
}

/* Returns 1 if SIGQUIT is in this set of /proc/PID/status, 0 if not, or -errno. */
static int has_quit(const struct visit *visit, const char *set)
{
	unsigned long long signals = 0;
	const char *line;
	BUF(status);
	int err = io_read_again(visit->status, STATUS_MAX, &status);

	line = err ? NULL : strstr(status.data, set);
	if (line)
		signals = strtoull(line + strlen(set), NULL, 16);
	return err ? err : (int)(signals >> (SIGQUIT - 1) & 1);
}

int visit_catches_quit(const struct visit *visit)
{
	return has_quit(visit, "\nSigCgt:");
}

bool visit_quit_is_pending(const struct visit *visit)
{
	return has_quit(visit, "\nShdPnd:") == 1;
}

/* By pidfd (Linux 5.3, 5.1 for the signal). Without one the pid could be reused between check and kill(). */
static int send_quit(pid_t pid, int pidfd)
{
	long ret = pidfd >= 0 ? syscall(SYS_pidfd_send_signal, pidfd, SIGQUIT, NULL, 0) : kill(pid, SIGQUIT);

	return ret < 0 ? -errno : 0;
}

int visit_send_quit(struct visit *visit)
{
	pid_t pid = visit->target->pid;
	IO_FD(pidfd) = syscall(SYS_pidfd_open, pid, 0);
	int err = visit_check(visit);

	if (err)
		return err;
	/* Checked last: the default action of SIGQUIT would kill the JVM. */
	if (visit_catches_quit(visit) != 1)
		return visit_fail(visit, -ENOTSUP,
				  "JVM %d does not handle SIGQUIT: start it without -Xrs, or by "
				  "`duet record -- java`",
				  pid);
	err = send_quit(pid, pidfd);
	return err ? visit_fail(visit, err, "cannot signal JVM %d: %s", pid, strerror(-err)) : 0;
}

/* Waits up to `ns`. Returns 1 when ready, 0 when the time has passed, or -errno with the reason in visit->why. */
static int wait_ready(struct visit *visit, struct pollfd *ready, uint64_t ns)
{
	uint64_t now = clock_monotonic_ns(), left = now < visit->deadline_ns ? visit->deadline_ns - now : 0;
	struct timespec sleep;
	int err = visit_check(visit);

	if (err)
		return err;
	if (cancelled)
		return visit_fail(visit, -ECANCELED, "attaching to JVM %d was interrupted", visit->target->pid);
	if (!left)
		return visit_fail(visit, -ETIMEDOUT, "JVM %d does not answer: is it hung or at a long safepoint?",
				  visit->target->pid);
	if (ns > left)
		ns = left;
	sleep = (struct timespec){.tv_sec = ns / NS_PER_SEC, .tv_nsec = ns % NS_PER_SEC};
	return ppoll(ready, ready ? 1 : 0, &sleep, NULL) > 0;
}

int visit_pause(struct visit *visit, uint64_t ns)
{
	int ready = wait_ready(visit, NULL, ns);

	return ready < 0 ? ready : 0;
}

int visit_wait(struct visit *visit, int fd, short events)
{
	struct pollfd ready = {.fd = fd, .events = events};
	int ret;

	do {
		ret = wait_ready(visit, &ready, 100 * NS_PER_MS);
	} while (ret == 0);
	return ret < 0 ? ret : 0;
}
