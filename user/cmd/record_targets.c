/* SPDX-License-Identifier: MIT */
#include "cmd/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "event/options.h"
#include "jvms/launch.h"
#include "subject/program.h"

#define PIDS_MAX 1024 /* DUET_MAX_TARGETS */
#define SHOWN_MAX 400 /* bytes of a command line in a message */

static void add_words(struct buf *line, char **words, int count)
{
	for (int i = 0; i < count && line->len <= SHOWN_MAX; i++)
		buf_printf(line, " %s", line->len + strlen(words[i]) > SHOWN_MAX ? "…" : words[i]);
}

static bool is_number(const char *text)
{
	return !text[strspn(text, "0123456789,")];
}

bool record_targets_lack_dashes(const struct command_words *words)
{
	char *first = words->count && words->dashdash ? words->items[0] : NULL;
	BUF(line);
	int at = 1;

	if (!first || is_number(first) || !launch_is_program(first))
		return false;
	while (at < words->argc && words->argv[at] != first)
		at++;
	add_words(&line, words->argv + 1, at - 1);
	buf_add_str(&line, " --");
	add_words(&line, words->argv + at, words->argc - at);
	log_error("%s is a program, and a command comes after --: duet record%s", first, line.data);
	return true;
}

static int add_pid(struct options *options, pid_t pid)
{
	for (size_t i = 0; i < options->pids.len; i++)
		if (options->pids.items[i] == pid)
			return 0;
	if (options->pids.len >= PIDS_MAX)
		return log_refuse("more than %d processes: use --host for all of them", PIDS_MAX);
	return vec_push(&options->pids, pid);
}

static int add_number(struct options *options, const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (!errno && *text && !*end && pid > 0 && pid <= INT32_MAX)
		return add_pid(options, (pid_t)pid);
	return log_refuse("'%s' is not a process id: give a number, several with commas: -p 123,456", text);
}

static void refuse_name(const char *name)
{
	struct text_guess guess = {.typed = name};
	struct running running;
	BUF(help);

	(void)running_find(&running, NULL);
	for (size_t i = 0; i < running.jvms.len; i++) {
		text_guess(&guess, running.jvms.items[i].program);
		text_guess(&guess, running_short_name(running.jvms.items[i].program));
	}
	running_release(&running);
	text_add_guess(&guess, "",
		       geteuid() ? "`duet list` shows the JVMs that you may read, as root all"
				 : "`duet list` shows what the JVMs run",
		       &help);
	log_error("no JVM runs '%s'%s", name, help.data);
}

static void ask_for_choice(const char *name, const struct running *running)
{
	BUF(list);

	running_list(running, &list);
	log_error("%zu JVMs run '%s': choose one by its number: %s", running->jvms.len, name, list.data);
}

static int add_name(struct options *options, const char *name)
{
	struct running running;
	int err = running_find(&running, name);

	if (!err && running.jvms.len == 1)
		err = add_pid(options, running.jvms.items[0].process->pid);
	else if (!err && running.jvms.len)
		ask_for_choice(name, &running);
	else
		refuse_name(name);
	if (!err && running.jvms.len != 1)
		err = -EINVAL;
	running_release(&running);
	return err;
}

/* Returns true if the text is the name of a program and no number: names have letters. */
static bool is_name(const char *text)
{
	return *text != '-' && strspn(text, "0123456789") < strlen(text);
}

static int add_processes(struct options *options, const char *list)
{
	char *copy = strdup(list), *rest = copy, *one;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (one = strsep(&rest, ",")))
		err = is_name(one) ? add_name(options, one) : add_number(options, one);
	free(copy);
	return err;
}

bool record_targets_has(const char *name)
{
	struct running running;
	bool has_some;

	(void)running_find(&running, name);
	has_some = running.jvms.len;
	running_release(&running);
	return has_some;
}

static int count_kinds(const struct options *options)
{
	return (options->pids.len > 0) + options->host + (options->cgroup != NULL) + (options->container != NULL) +
	       (options->comm != NULL) + (options->command != NULL);
}

int record_targets_set(struct options *options, const struct command_words *words)
{
	int err = 0, kinds, plain = words->dashdash < 0 ? words->count : words->dashdash;

	for (size_t i = 0; !err && i < options->given.pids.len; i++)
		err = add_processes(options, options->given.pids.items[i]);
	for (int i = 0; !err && i < plain; i++) {
		if (is_name(words->items[i]) && !record_targets_has(words->items[i]) &&
		    record_targets_lack_dashes(words))
			return -EINVAL;
		err = add_processes(options, words->items[i]);
	}
	if (err < 0)
		return err;
	if (words->dashdash >= 0 && words->dashdash < words->count)
		options->command = words->items + words->dashdash;
	kinds = count_kinds(options);
	options->host = !options->pids.len && !options->command;
	if (kinds == 1)
		return 0;
	return log_refuse("%s: give -p PID, --host, --cgroup, --container, --comm or -- CMD",
			  kinds ? "more than one kind of target" : "nothing to profile");
}
