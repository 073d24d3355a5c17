/* SPDX-License-Identifier: MIT */
#include "base/child.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

int child_await(pid_t child, int *ret_status)
{
	pid_t ended;

	do
		ended = waitpid(child, ret_status, 0);
	while (ended < 0 && errno == EINTR);
	return ended < 0 ? -errno : 0;
}

/* Returns true when it has ended. */
static bool has_ended_by(pid_t child, int *ret_status, uint64_t until_ns)
{
	bool has_ended;

	while (!(has_ended = waitpid(child, ret_status, WNOHANG)) && clock_monotonic_ns() < until_ns)
		clock_sleep(NS_PER_MS);
	return has_ended;
}

int child_await_until(pid_t child, int *ret_status, uint64_t until_ns)
{
	*ret_status = 1;
	if (has_ended_by(child, ret_status, until_ns))
		return 0;
	kill(child, SIGKILL);
	return has_ended_by(child, ret_status, clock_monotonic_ns() + NS_PER_SEC) ? 0 : -ETIMEDOUT;
}

void child_end_with(pid_t parent, int signo)
{
	prctl(PR_SET_PDEATHSIG, signo);
	if (getppid() != parent)
		raise(signo);
}

#define NICE_RAISED (-10) /* nine times the weight of nice 0 in the kernel's scheduler */

static bool is_raised;

void nice_raise(void)
{
	is_raised = !getpriority(PRIO_PROCESS, 0) && !setpriority(PRIO_PROCESS, 0, NICE_RAISED);
}

void nice_reset(void)
{
	if (is_raised)
		(void)setpriority(PRIO_PROCESS, 0, 0);
	is_raised = false;
}

static void close_range_of(int first, int last)
{
	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	/* before Linux 5.9 */
	for (long fd = first; fd <= last && fd < sysconf(_SC_OPEN_MAX); fd++)
		close((int)fd);
}

void child_keep_only(int first, int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	close_range_of(first, low - 1);
	close_range_of(low + 1, high - 1);
	close_range_of(high + 1, INT_MAX);
}

int rights_keep(uint64_t capabilities)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		sets[i].permitted &= (uint32_t)(capabilities >> 32 * i);
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, sets) < 0 ? -errno : 0;
}

int rights_narrow(uint64_t capabilities)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	return sets[0].permitted & RIGHT(CAP_SYS_PTRACE) ? rights_keep(capabilities) : 0;
}

int rights_use_files_of(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) < 0)
		return -errno;
	setfsgid(gid);
	setfsuid(uid);
	/* setfsuid() and setfsgid() report no failure. With -1 they change nothing and return the current id. */
	return setfsgid((gid_t)-1) == (int)gid && setfsuid((uid_t)-1) == (int)uid ? 0 : -EPERM;
}
