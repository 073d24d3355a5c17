/* SPDX-License-Identifier: MIT */
/* The command table, and nothing else. */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

static int cmd_help(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"record", cmd_record, "profile processes: duet record -p PID -d 30 -f out.html"},
	{"daemon", cmd_daemon, "profile the host window by window: duet daemon --config /etc/duet/duet.conf"},
	{"check", cmd_check, "what this host can do, and how to get the rest"},
	{"list", cmd_list, "events, formats, and the JVMs that run here"},
	{"status", cmd_status, "what the duets that run here say of themselves"},
	{"version", cmd_version, "the version"},
	{"help", cmd_help, "this text"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int cmd_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("duet: one profile from the kernel to Java\n\n"
	     "usage: duet COMMAND [OPTIONS]    each command has --help\n"
	     "       duet [OPTIONS] PID        the same as duet record\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	return 0;
}

static const struct command *find(const char *name)
{
	if (!strcmp(name, "--version"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command *command = find(argc > 1 ? argv[1] : "help");

	if (command)
		return command->run(argc - 1, argv + 1);
	return cmd_record(argc, argv); /* options and a pid without the verb */
}
