/* SPDX-License-Identifier: MIT */
/* `duet status`: what the duets that run here say of themselves. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "status.h"

struct status_options {
	bool help;
};

static const struct opt rows[] = {
	{'h', "help", NULL, "this text", opt_flag, offsetof(struct status_options, help)},
	{0},
};

static void print_help(void)
{
	struct buf text;

	buf_init(&text);
	buf_add_str(&text, "usage: duet status [PID]    of this duet, or of all that run here\n\n");
	opt_help(rows, &text);
	fputs(text.data, stdout);
	buf_release(&text);
}

/* By their sockets, which end with them. */
static int for_all(int (*one)(int pid))
{
	FILE *file = fopen("/proc/net/unix", "re");
	struct vec(int) seen = {0};
	char line[512];
	int code = 0;

	while (file && fgets(line, sizeof(line), file)) {
		const char *name = strstr(line, " @" STATUS_NAME);

		if (name) /* out of memory: one less */
			(void)vec_push(&seen, atoi(name + strlen(" @" STATUS_NAME)));
	}
	if (file)
		fclose(file);
	for (size_t i = 0; i < seen.len; i++)
		code |= one(seen.items[i]);
	if (!seen.len) {
		log_error("no duet runs here");
		code = 1;
	}
	vec_release(&seen);
	return code;
}

static int print_one(int pid)
{
	struct buf text;
	int err;

	buf_init(&text);
	err = status_ask(pid, &text);
	if (!err)
		printf("duet %d\n%s", pid, text.data);
	else if (err == -EACCES)
		log_error("duet %d: only root and the user who runs it may ask", pid);
	else if (err == -ECONNREFUSED)
		log_error("no duet has the pid %d", pid);
	else
		log_error("duet %d: %s", pid, strerror(-err));
	buf_release(&text);
	return err ? 1 : 0;
}

int cmd_status(int argc, char **argv)
{
	struct status_options options = {0};
	char **args = calloc((size_t)argc + 1, sizeof(*args));
	int count = 0, dashdash = -1, code = 2;
	struct buf why;

	buf_init(&why);
	if (!args)
		log_error("out of memory");
	else if (opt_parse(rows, argc, argv, &options, args, &count, &dashdash, &why) < 0)
		log_error("%s", why.data);
	else if (options.help)
		code = (print_help(), 0);
	else if (count > 1 || (count && atoi(args[0]) <= 0))
		log_error("duet status takes the pid of a duet, or nothing");
	else
		code = count ? print_one(atoi(args[0])) : for_all(print_one);
	buf_release(&why);
	free(args);
	return code;
}
