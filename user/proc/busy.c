/* SPDX-License-Identifier: MIT */
#include "proc/busy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "proc/process.h"

#define STAT_MAX 4096 /* bytes of /proc/PID/stat */
#define PF_KTHREAD 0x200000 /* linux/sched.h */

/* Fields of /proc/PID/stat behind the name, counted from the state. */
enum { STAT_STATE, STAT_FLAGS = 6, STAT_USER = 11, STAT_SYSTEM, STAT_FIELDS };

struct moment {
	char state;
	uint64_t ticks;
};

/* False for a process that has ended, and for kernel threads. The name may hold any characters. */
static bool read_moment(pid_t pid, struct moment *ret)
{
	uint64_t fields[STAT_FIELDS] = {0};
	struct buf text;
	char path[32];
	char *at;

	buf_init(&text);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	at = io_read_file(AT_FDCWD, path, STAT_MAX, &text) ? NULL : strrchr(text.data, ')');
	if (at && at[1] && at[2]) {
		ret->state = at[2];
		at += 3;
		for (int field = STAT_STATE + 1; field < STAT_FIELDS; field++)
			fields[field] = strtoull(at, &at, 10);
		ret->ticks = fields[STAT_USER] + fields[STAT_SYSTEM];
	}
	buf_release(&text);
	return at && fields[STAT_FLAGS] && !(fields[STAT_FLAGS] & PF_KTHREAD);
}

void busy_note(struct busy *busy)
{
	struct moment moment;
	size_t count;
	pid_t *pids;

	if (process_list(&pids, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (read_moment(pids[i], &moment))
			(void)map_put(&busy->ticks, (uint64_t)pids[i], moment.ticks + 1);
	free(pids);
}

void busy_each(const struct busy *busy, busy_visit visit, void *context)
{
	uint64_t pid, ticks;
	size_t cursor = 0;
	struct moment now;

	while (map_next(&busy->ticks, &cursor, &pid, &ticks))
		if (read_moment((pid_t)pid, &now) && (now.ticks + 1 > ticks || now.state == 'R'))
			visit(context, (pid_t)pid);
}

void busy_release(struct busy *busy)
{
	map_release(&busy->ticks);
}
