/* SPDX-License-Identifier: MIT */
/* `duet status`: statistics of the recordings that run on this host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "status/status.h"

/* Returns 0 or -errno, without a message. */
static int print_one(int pid)
{
	BUF(text);
	BUF(clean);
	int err = status_ask(pid, &text);

	text_add_lines(&clean, text.data); /* the answer may contain any bytes */
	if (!err)
		printf("duet %d\n%s", pid, clean.data);
	return err;
}

/* Returns true if a recording's socket does not exist any more, or was closed before it answered. */
static bool has_ended(int err)
{
	return err == -ECONNREFUSED || err == -ECONNRESET;
}

/* Returns the exit code. */
static int report(int pid, int err)
{
	if (err == -EACCES)
		log_error("duet %d: only root and the user who runs it may ask", pid);
	else if (has_ended(err))
		log_error("no duet has the pid %d", pid);
	else if (err == -EAGAIN)
		log_error("duet %d: it accepts no question: it is hung, or another program has taken its name", pid);
	else if (err)
		log_error("duet %d: %s", pid, strerror(-err));
	return err ? 1 : 0;
}

/*
 * Finds the recordings by their sockets, which exist as long as they run. A recording that ends while this runs is not
 * an error.
 */
static int print_all(void)
{
	FILE *file = fopen("/proc/net/unix", "re");
	struct vec(int) seen = {0};
	char line[512];
	size_t ended = 0;
	int code = 0;

	while (file && fgets(line, sizeof(line), file)) {
		const char *name = strstr(line, " @" STATUS_NAME);

		if (name) /* out of memory: this one is left out */
			(void)vec_push(&seen, atoi(name + strlen(" @" STATUS_NAME)));
	}
	if (file)
		fclose(file);
	for (size_t i = 0; i < seen.len; i++) {
		int err = print_one(seen.items[i]);

		ended += has_ended(err);
		code |= has_ended(err) ? 0 : report(seen.items[i], err);
	}
	if (seen.len == ended)
		code = log_fail(1, "no recording runs on this host");
	vec_release(&seen);
	return code;
}

static int run(void *options, const struct command_words *words)
{
	int pid = words->count ? atoi(words->items[0]) : 0;

	if (!words->count)
		return print_all();
	if (pid > 0)
		return report(pid, print_one(pid));
	return log_fail(2, "'%s' is not a process id: duet status takes the pid of a duet, or nothing",
			words->items[0]);
}

const struct command cmd_status = {
	.name = "status",
	.summary = "statistics of the recordings that run on this host",
	.usage = "duet status [PID]    statistics of one recording, or of all on this host\n",
	.rows = command_no_rows,
	.most_words = 1,
	.takes = "the pid of a duet, or nothing",
	.run = run,
};
