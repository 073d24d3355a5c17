/* SPDX-License-Identifier: MIT */
#include "wait/task.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 512

/* Reads the beginning of a file. Returns false, and an empty text, if it cannot be read. */
static bool read_text(int tid, const char *name, char text[TEXT_BYTES])
{
	char path[64];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, TEXT_BYTES - 1);
		close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* The letter of the state follows the name, which may have any character. */
static bool stat_sleeps(int tid)
{
	char text[TEXT_BYTES];
	const char *state = read_text(tid, "stat", text) ? strrchr(text, ')') : NULL;

	return state && (state[1] == ' ') && strchr("SDTt", state[2]);
}

/* Takes the number of the last word off the text. Returns 0 if there is none. */
static uintptr_t take_number(char *text)
{
	char *space = strrchr(text, ' ');
	uintptr_t number = space ? strtoull(space + 1, NULL, 16) : 0;

	if (space)
		*space = '\0';
	return number;
}

/*
 * "running", or numbers, of which the last two are sp and pc. If the process may not be looked at, as one whose program
 * has capabilities, this file cannot be opened by the process itself, and `stat` shows the state.
 */
bool task_sleeps(int tid, struct task_sleep *ret)
{
	char text[TEXT_BYTES];

	*ret = (struct task_sleep){0};
	if (read_text(tid, "syscall", text)) {
		if (!strncmp(text, "running", strlen("running")))
			return false;
		ret->pc = take_number(text);
		ret->sp = take_number(text);
	} else if (!stat_sleeps(tid)) {
		return false;
	}
	if (!ret->pc || !ret->sp)
		ret->pc = ret->sp = 0;
	if (read_text(tid, "wchan", text) && text[0] != '0')
		memcpy(ret->function, text, strnlen(text, sizeof(ret->function) - 1));
	return true;
}

/* "RAN WAITED TIMES" */
bool task_waited(int tid, uint64_t *ret_ns)
{
	char text[TEXT_BYTES], *waited;

	if (!read_text(tid, "schedstat", text))
		return false;
	waited = strchr(text, ' ');
	*ret_ns = waited ? strtoull(waited, NULL, 10) : 0;
	return waited;
}
