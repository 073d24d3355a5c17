/* SPDX-License-Identifier: MIT */
/* The command table, and nothing else. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"

static const struct command cmd_help;

static const struct command *const commands[] = {
	&cmd_record, &cmd_daemon, &cmd_check, &cmd_list, &cmd_status, &cmd_version, &cmd_help,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int run_help(void *options, const struct command_words *words)
{
	(void)options;
	(void)words;
	puts("duet: one profile from the kernel to Java\n\n"
	     "usage: duet COMMAND [OPTIONS]    each command has --help\n"
	     "       duet [OPTIONS] PID        the same as duet record\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	return 0;
}

static const struct command cmd_help = {
	.name = "help",
	.summary = "this text",
	.usage = "duet help    the commands; each of them has --help\n",
	.rows = command_no_rows,
	.options_bytes = sizeof(struct command_no_options),
	.takes = "no words: duet COMMAND --help tells of one command",
	.run = run_help,
};

/* Options and a pid without the verb are those of the first. NULL after the user has been told. */
static const struct command *find(const char *name)
{
	if (!strcmp(name, "--version"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	if (!isalpha((unsigned char)*name))
		return commands[0];
	log_error("'%s' is neither a command nor a process id: duet help shows the commands", name);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command *command = find(argc > 1 ? argv[1] : "help");
	bool has_verb = command && argc > 1 && (isalpha((unsigned char)*argv[1]) || command != commands[0]);

	return command ? command_run(command, argc - has_verb, argv + has_verb) : 2;
}
