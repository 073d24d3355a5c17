/* SPDX-License-Identifier: MIT */
/*
 * A command of the table in main.c: its options, what --help says, and what it does. Each cmd_<name>.c ends in one;
 * command_run() parses the options, prints the help, and refuses words that the command does not take.
 */
#pragma once

#include "base/opt.h"

/* The words of the command line that are not options, and the command line itself. */
struct command_words {
	char **items;
	int count;
	int dashdash; /* index of the first word after "--"; -1: there is no "--" */
	int argc; /* argc, argv: the whole command line; argv[0] is the command's name */
	char **argv;
};

struct command {
	const char *name;
	const char *summary; /* its line in `duet help` */
	const char *usage; /* what follows "usage: " in --help, with a newline */
	const char *examples; /* lines at the end of the short help; NULL: none */
	const struct opt *rows; /* must contain COMMAND_HELP */
	size_t options_bytes; /* of the struct that the rows fill: zeroed, and `enum command_help help` is first */
	int most_words;
	const char *takes; /* end of the message "duet NAME takes …", for words that the command does not take */
	/* Called when an option is wrong. Returns true after reporting a likelier cause. May be NULL. */
	bool (*explain)(const struct command_words *words);
	void (*init)(void *options); /* sets the defaults that are not 0; may be NULL */
	void (*release)(void *options); /* may be NULL */
	int (*run)(void *options, const struct command_words *words); /* returns the exit code */
};

/* clang-format off */
#define COMMAND_HELP {'h', "help", NULL, "this text; --help=all has all options", command_help, \
	.scope = OPT_NOT_CONFIG | OPT_MAY_HAVE_VALUE, .is_short = true}
/* clang-format on */

extern const struct opt command_no_rows[]; /* for commands whose only option is --help; they need no struct */
int command_help(void *field, const char *value, struct buf *why); /* a parser: [enum command_help] */
/* Returns the exit code: 0 done, 1 failed, 2 wrong usage. Errors have been reported. */
int command_run(const struct command *command, int argc, char **argv);

extern const struct command cmd_record;
extern const struct command cmd_daemon;
extern const struct command cmd_annotate;
extern const struct command cmd_convert;
extern const struct command cmd_jfrconv; /* the same, but --wall of a recording without it makes an empty output */
extern const struct command cmd_check;
extern const struct command cmd_diff;
extern const struct command cmd_list;
extern const struct command cmd_status;
extern const struct command cmd_version;

/* ---- what runs here now, for completion: cmd_list.c ---- */

void list_jvm_choices(struct buf *out); /* appends "PID<tab>program", one per line */
void list_container_choices(struct buf *out); /* appends names, one per line */
