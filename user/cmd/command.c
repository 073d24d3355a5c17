/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"

#define SCREEN_LINES 50 /* a longer help is cut to the rows that are short */

const struct opt command_no_rows[] = {
	COMMAND_HELP,
	OPT_END,
};

int command_help(void *field, const char *value, struct buf *why)
{
	if (value && strcmp(value, "all") != 0)
		return buf_explain(why, -EINVAL, "all is accepted");
	*(enum command_help *)field = value ? COMMAND_HELP_ALL : COMMAND_HELP_SHORT;
	return 0;
}

static size_t lines_of(const struct buf *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines;
}

static int print_help(const struct command *command, enum command_help wanted)
{
	BUF(text);
	size_t usage, options;

	buf_printf(&text, "usage: %s", command->usage);
	usage = text.len;
	buf_add_char(&text, '\n');
	(void)opt_help(command->rows, false, &text);
	if (wanted == COMMAND_HELP_SHORT && lines_of(&text) > SCREEN_LINES) {
		buf_cut(&text, usage);
		options = opt_help(command->rows, true, &text);
		if (command->examples)
			buf_printf(&text, "\nExamples:\n%s", command->examples);
		buf_printf(&text, "\nduet %s --help=all lists all %zu options; duet(1) explains them.\n", command->name,
			   options);
	}
	fputs(text.data, stdout);
	return 0;
}

static int parse_and_run(const struct command *command, void *options, struct command_words *words)
{
	BUF(why);
	int err = opt_parse(command->rows, words->argc, words->argv, options, words->items, &words->count,
			    &words->dashdash, &why);

	if (err < 0 && !(command->explain && command->explain(words)))
		log_error("%s", why.data);
	if (err < 0)
		return 2;
	if (*(const enum command_help *)options)
		return print_help(command, *(const enum command_help *)options);
	if (words->count <= command->most_words)
		return command->run(options, words);
	log_error("'%s': duet %s takes %s", words->items[command->most_words], command->name, command->takes);
	return 2;
}

int command_run(const struct command *command, int argc, char **argv)
{
	struct command_words words = {
		.items = calloc((size_t)argc + 1, sizeof(char *)), .dashdash = -1, .argc = argc, .argv = argv};
	void *options = calloc(1, command->options_bytes + sizeof(enum command_help));
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

static int print_version(void *options, const struct command_words *words)
{
	printf("duet %s\n", DUET_VERSION);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.summary = "the version",
	.usage = "duet version\n",
	.rows = command_no_rows,
	.takes = "no words",
	.run = print_version,
};
