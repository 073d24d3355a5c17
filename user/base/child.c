/* SPDX-License-Identifier: MIT */
#include "base/child.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int child_await(pid_t child, int *ret_status)
{
	pid_t ended;

	do
		ended = waitpid(child, ret_status, 0);
	while (ended < 0 && errno == EINTR);
	return ended < 0 ? -errno : 0;
}

void child_end_with(pid_t parent, int signo)
{
	prctl(PR_SET_PDEATHSIG, signo);
	if (getppid() != parent)
		raise(signo);
}
