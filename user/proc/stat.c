/* SPDX-License-Identifier: MIT */
#include "proc/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/process.h"

#define STAT_MAX 4096 /* bytes of the file */

int proc_open(pid_t pid, const char *folder)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, folder);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

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
	int err = io_read_again(fd, STAT_MAX, &text);

	if (!err)
		err = proc_stat_parse(ret, text.data);
	return err;
}

int proc_stat_read(struct proc_stat *ret, int folder, const char *name)
{
	IO_FD(fd) = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno; /* a dead process's folder is empty */
	return proc_stat_read_again(ret, fd);
}

int proc_stat_of(struct proc_stat *ret, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_read(ret, AT_FDCWD, path);
}

/* False for a process that has ended, and for kernel threads. */
static bool read_moment(pid_t pid, struct proc_stat *ret)
{
	return !proc_stat_of(ret, pid) && !(ret->fields[STAT_FLAGS] & PF_KTHREAD);
}

static uint64_t ticks_of(const struct proc_stat *stat)
{
	return stat->fields[STAT_USER] + stat->fields[STAT_SYSTEM];
}

static void note(void *context, pid_t pid)
{
	struct busy *busy = context;
	struct proc_stat moment;

	if (read_moment(pid, &moment))
		(void)map_put(&busy->ticks, (uint64_t)pid, ticks_of(&moment) + 1);
}

void busy_note(struct busy *busy)
{
	(void)process_each(note, busy);
}

void busy_each(const struct busy *busy, void (*visit)(void *context, pid_t pid), void *context)
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

/* Both classes of ELF files have the same first fields. */
static const char *judge(const Elf64_Ehdr *head)
{
	if (memcmp(head->e_ident, ELFMAG, SELFMAG))
		return NULL;
	if (head->e_ident[EI_CLASS] == ELFCLASS32)
		return "it is a 32-bit program";
	return head->e_machine == MACHINE_ELF ? NULL : "it is a program for another processor";
}

const char *machine_foreign(pid_t pid)
{
	Elf64_Ehdr head;
	IO_FD(fd) = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return pread(fd, &head, sizeof(head), 0) == sizeof(head) ? judge(&head) : NULL;
}
