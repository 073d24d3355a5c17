/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cmd/cmd.h"

const struct opt command_no_rows[] = {
	COMMAND_HELP,
	OPT_END,
};

static int print_help(const struct command *command)
{
	struct buf text;

	buf_init(&text);
	buf_printf(&text, "usage: %s\n", command->usage);
	opt_help(command->rows, &text);
	fputs(text.data, stdout);
	buf_release(&text);
	return 0;
}

static int parse_and_run(const struct command *command, void *options, struct command_words *words)
{
	struct buf why;
	int err;

	buf_init(&why);
	err = opt_parse(command->rows, words->argc, words->argv, options, words->items, &words->count,
			&words->dashdash, &why);
	if (err < 0 && !(command->explain && command->explain(words)))
		log_error("%s", why.data);
	buf_release(&why);
	if (err < 0)
		return 2;
	if (*(const bool *)options)
		return print_help(command);
	if (words->count <= command->most_words)
		return command->run(options, words);
	log_error("'%s': duet %s takes %s", words->items[command->most_words], command->name, command->takes);
	return 2;
}

int command_run(const struct command *command, int argc, char **argv)
{
	struct command_words words = {
		.items = calloc((size_t)argc + 1, sizeof(char *)), .dashdash = -1, .argc = argc, .argv = argv};
	void *options = calloc(1, command->options_bytes);
	int code = 1;

	if (options && command->init)
		command->init(options);
	if (words.items && options)
		code = parse_and_run(command, options, &words);
	else
		log_error("out of memory");
	if (options && command->release)
		command->release(options);
	free(options);
	free(words.items);
	return code;
}
