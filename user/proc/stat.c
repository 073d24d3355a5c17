/* SPDX-License-Identifier: MIT */
#include "proc/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define STAT_MAX 4096 /* bytes of the file */

/* The process's name may hold anything, even ") R 1", but no later field can hold ')'. */
int proc_stat_parse(struct proc_stat *ret, const char *text)
{
	const char *name = strchr(text, '('), *at = strrchr(text, ')');
	char *end;

	if (!name || !at || at < name || at[1] != ' ' || !at[2])
		return -EPROTO;
	*ret = (struct proc_stat){.state = at[2]};
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(at - name - 1), name + 1);
	at += 3;
	for (int field = STAT_PARENT; field < STAT_FIELDS; field++, at = end) {
		ret->fields[field] = strtoull(at, &end, 10);
		if (end == at)
			return -EPROTO;
	}
	return 0;
}

int proc_stat_read_again(struct proc_stat *ret, int fd)
{
	BUF(text);
	int err;

	err = io_read_again(fd, STAT_MAX, &text);
	if (!err)
		err = proc_stat_parse(ret, text.data);
	return err;
}

int proc_stat_read(struct proc_stat *ret, int folder, const char *name)
{
	int err, fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno; /* a dead process's folder is empty */
	err = proc_stat_read_again(ret, fd);
	close(fd);
	return err;
}
