/* SPDX-License-Identifier: MIT */
#include "proc/busy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "proc/process.h"
#include "proc/stat.h"

/* False for a process that has ended, and for kernel threads. */
static bool read_moment(pid_t pid, struct proc_stat *ret)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return !proc_stat_read(ret, AT_FDCWD, path) && !(ret->fields[STAT_FLAGS] & PF_KTHREAD);
}

static uint64_t ticks_of(const struct proc_stat *stat)
{
	return stat->fields[STAT_USER] + stat->fields[STAT_SYSTEM];
}

void busy_note(struct busy *busy)
{
	struct proc_stat moment;
	size_t count;
	pid_t *pids;

	if (process_list(&pids, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (read_moment(pids[i], &moment))
			(void)map_put(&busy->ticks, (uint64_t)pids[i], ticks_of(&moment) + 1);
	free(pids);
}

void busy_each(const struct busy *busy, busy_visit visit, void *context)
{
	uint64_t pid, ticks;
	size_t cursor = 0;
	struct proc_stat now;

	while (map_next(&busy->ticks, &cursor, &pid, &ticks))
		if (read_moment((pid_t)pid, &now) && (ticks_of(&now) + 1 > ticks || now.state == 'R'))
			visit(context, (pid_t)pid);
}

void busy_release(struct busy *busy)
{
	map_release(&busy->ticks);
}
