/* SPDX-License-Identifier: MIT */
/*
 * A command of the table in main.c: its options, what --help says, and what it does. Each cmd_<name>.c ends in one;
 * command_run() parses the options, prints the help, and refuses words that the command does not take.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/opt.h"

/* The command line without its options. */
struct command_words {
	char **items;
	int count;
	int dashdash; /* index of the first one after "--"; -1: there was none */
	int argc; /* and with them; argv[0] is the command's name */
	char **argv;
};

struct command {
	const char *name;
	const char *summary; /* a line of `duet help` */
	const char *usage; /* what follows "usage: " in --help, with a newline */
	const struct opt *rows; /* COMMAND_HELP among them */
	size_t options_bytes; /* of the struct that the rows fill; it begins as zeros, its first field is `bool help` */
	int most_words;
	const char *takes; /* completes "duet NAME takes" when there are more */
	void (*init)(void *options); /* the defaults that are not 0; may be NULL */
	void (*release)(void *options); /* may be NULL */
	int (*run)(void *options, const struct command_words *words); /* the exit code */
};

/* clang-format off */
#define COMMAND_HELP {'h', "help", NULL, "this text", opt_flag, .scope = OPT_NOT_CONFIG}
/* clang-format on */

/* The exit code: 0 done, 1 failed, 2 wrong usage, after the user has been told. */
int command_run(const struct command *command, int argc, char **argv);

extern const struct command cmd_record;
extern const struct command cmd_daemon;
extern const struct command cmd_check;
extern const struct command cmd_list;
extern const struct command cmd_status;
extern const struct command cmd_version;

/* For those that have no other option. */
struct command_no_options {
	bool help;
};
extern const struct opt command_no_rows[];

#endif
