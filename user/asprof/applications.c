/* SPDX-License-Identifier: MIT */
#include "asprof/applications.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "subject/running.h"

/* `name`: NULL for the JVM that was started last, as async-profiler's command line takes it. */
static pid_t find_one(const char *name, struct buf *why)
{
	const struct process *newest = NULL;
	struct running running;
	pid_t found = -ESRCH;

	(void)running_find(&running, name);
	for (size_t i = 0; i < running.jvms.len; i++) {
		const struct process *process = running.jvms.items[i].process;

		if (!newest || process->start_ticks >= newest->start_ticks)
			newest = process;
	}
	if (running.jvms.len > 1 && name)
		buf_add_str(why, "Multiple Java processes found");
	else if (!newest)
		buf_add_str(why, "No Java process");
	else
		found = newest->pid;
	running_release(&running);
	return found;
}

pid_t applications_find(const char *target, struct buf *why)
{
	char *end;
	long pid;

	if (!isdigit((unsigned char)*target))
		return find_one(strcmp(target, "jps") ? target : NULL, why);
	pid = strtol(target, &end, 10);
	if (!*end && pid > 0 && pid <= INT_MAX)
		return (pid_t)pid;
	buf_printf(why, "%s is not a process id", target);
	return -EINVAL;
}
