/* SPDX-License-Identifier: MIT */
/* The table of commands, and the dispatch to them. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "asprof/asprof.h"
#include "base/io.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/record.h"
#include "jvms/launch.h"

static const struct command cmd_help, cmd_complete;

static const struct command *const commands[] = {
	&cmd_record, &cmd_daemon, &cmd_convert, &cmd_diff, &cmd_annotate, &cmd_check,
	&cmd_list,   &cmd_status, &cmd_version, &cmd_help, &cmd_complete,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_by_name(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int run_complete(void *options, const struct command_words *words)
{
	const struct command *command = words->count ? command_by_name(words->items[0]) : NULL;
	const struct opt *row = command && words->count > 1 ? opt_by_spelling(command->rows, words->items[1]) : NULL;
	BUF(out);

	if (words->count && !command)
		return log_fail(2, "unknown command '%s': duet complete lists the commands", words->items[0]);
	for (size_t i = 0; !words->count && i < COMMANDS; i++)
		buf_printf(&out, "%s\t%s\n", commands[i]->name, commands[i]->summary);
	if (command && words->count == 1)
		opt_spellings(command->rows, &out);
	else if (row && row->choices)
		row->choices(&out);
	fputs(out.data, stdout);
	return 0;
}

static const struct command cmd_complete = {
	.name = "complete",
	.summary = "completions for the shells",
	.usage = "duet complete [COMMAND [-- OPTION]]    commands; COMMAND's options; or the values of one of them\n",
	.rows = command_no_rows,
	.most_words = 2,
	.takes = "a command and one of its options",
	.run = run_complete,
};

static void refuse(const char *name)
{
	bool is_program = launch_is_program(name);
	struct text_guess guess = {.typed = name};
	BUF(help);

	for (size_t i = 0; i < COMMANDS; i++)
		text_guess(&guess, commands[i]->name);
	text_add_guess(&guess, "duet ",
		       is_program ? "to profile a program, give duet record -- and then its command line"
				  : "duet help shows the commands, duet list the JVMs that run",
		       &help);
	log_error("unknown command '%s'%s", name, help.data);
}

static int run_help(void *options, const struct command_words *words)
{
	const struct command *command;

	if (words->count) {
		command = command_by_name(words->items[0]);
		if (!command)
			refuse(words->items[0]);
		return command ? command_run(command, 2, (char *[]){words->items[0], "--help", NULL}) : 2;
	}
	puts("duet: one profile from the kernel to Java\n\n"
	     "usage: duet COMMAND [OPTIONS]    each command has --help\n"
	     "       duet [OPTIONS] PID|NAME   the same as duet record; NAME: a jar or main class\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	return 0;
}

static const struct command cmd_help = {
	.name = "help",
	.summary = "this text",
	.usage = "duet help [COMMAND]    the commands; what COMMAND --help says\n",
	.rows = command_no_rows,
	.most_words = 1,
	.takes = "one command",
	.run = run_help,
};

/*
 * Returns the command of this name. Without a command, options, a process id and the name of what a JVM runs are for
 * the first command; then *ret_is_named is false. Returns NULL after reporting the error.
 */
static const struct command *find(const char *name, bool *ret_is_named)
{
	const struct command *command;

	if (!strcmp(name, "--version"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	command = command_by_name(name);
	*ret_is_named = command;
	if (command)
		return command;
	if (!isalpha((unsigned char)*name) || strchr(name, '.') || record_targets_has(name))
		return commands[0];
	refuse(name);
	return NULL;
}

/* async-profiler's programs, whose command lines duet takes if it is called by their names. */
static const struct other {
	const char *name;
	int (*run)(int argc, char **argv);
} others[] = {{"asprof", asprof_main}, {"jfrconv", jfrconv_main}, {"profiler.sh", asprof_main}};

#define OTHERS (sizeof(others) / sizeof(*others))

static const struct other *other_by_word(const char *word)
{
	for (size_t i = 0; i < OTHERS; i++)
		if (!strcmp(word, others[i].name))
			return &others[i];
	return NULL;
}

/* Returns NULL for duet itself. Versions and platforms may follow a name: asprof-4.5-linux-x64. */
static const struct other *other_by_path(const char *path)
{
	for (size_t i = 0; i < OTHERS; i++)
		if (text_begins_with(basename(path), others[i].name))
			return &others[i];
	return NULL;
}

/* The program, or a link of another name that leads to one of these. */
static const struct other *other_by_link(const char *path)
{
	const struct other *other = other_by_path(path);
	char target[PATH_MAX] = "";

	if (!other && strcmp(basename(path), "duet") != 0 && readlink(path, target, sizeof(target) - 1) > 0)
		other = other_by_path(target);
	return other;
}

/* A file that is opened must not become a standard stream that was closed, and receive what is printed. */
static void fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	io_close(&fd);
}

/* Returns the exit status: an error if what was printed is not written. */
static int end(int code)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	log_error("stdout could not be written%s%s%s", errno ? ": " : "", errno ? strerror(errno) : "",
		  io_advice(-errno));
	return code ? code : 1;
}

int main(int argc, char **argv)
{
	const struct other *by_word = argc > 1 ? other_by_word(argv[1]) : NULL;
	const struct other *by_name = argc ? other_by_path(argv[0]) : NULL;
	const char *path = (const char *)getauxval(AT_EXECFN);
	const struct command *command;
	bool is_named;

	fill_standard();
	signals_open();
	if (by_word)
		return by_word->run(argc - 1, argv + 1);
	if (!by_name && path)
		by_name = other_by_link(path);
	if (by_name)
		return by_name->run(argc, argv);
	command = find(argc > 1 ? argv[1] : "help", &is_named);
	is_named &= argc > 1;
	return command ? end(command_run(command, argc - is_named, argv + is_named)) : 2;
}
