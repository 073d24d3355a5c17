/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/cmd.h"

static int run(void *options, const struct command_words *words)
{
	(void)options;
	(void)words;
	printf("duet %s\n", DUET_VERSION);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.summary = "the version",
	.usage = "duet version\n",
	.rows = command_no_rows,
	.options_bytes = sizeof(struct command_no_options),
	.takes = "no words",
	.run = run,
};
