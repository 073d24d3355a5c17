/* SPDX-License-Identifier: MIT */
#include "recorder/peer_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "recorder/arguments.h"

#define RUNNING "Profiling is running"

bool peer_recorder_may_request(const struct asprof_arguments *arguments)
{
	bool is_about_one = arguments->action == ASPROF_STATUS || arguments->action == ASPROF_STOP ||
			    arguments->action == ASPROF_DUMP || arguments->action == ASPROF_METRICS;

	return is_about_one && !arguments->file && !arguments->log;
}

bool peer_recorder_shows_others(const struct asprof_arguments *arguments, const struct asprof_arguments *begun)
{
	return !geteuid() && asprof_arguments_proc_ns(begun) &&
	       (arguments->action == ASPROF_DUMP || arguments->action == ASPROF_STOP);
}

/* Only what is in memory: a file of another kind could keep its reader waiting. */
static void drop_file(struct recorder_answer *answer)
{
	if (answer->report < 0 || fcntl(answer->report, F_GET_SEALS) >= 0)
		return;
	close(answer->report);
	answer->report = -1;
}

static int ask(int connection, const char *words, struct recorder_answer *ret, struct buf *why)
{
	int err = recorder_request(connection, DUET_QUESTION_SHARED, words, ret, why);

	if (!err)
		drop_file(ret);
	if (!err && ret->text.len)
		text_clean_lines(&ret->text);
	return err;
}

int peer_recorder_find(pid_t pid, uint64_t start_ticks)
{
	struct recorder_answer answer = RECORDER_ANSWER_NONE;
	int connection = recorder_connect_peer(pid, start_ticks), err;
	BUF(why);

	if (connection < 0)
		return connection;
	err = ask(connection, "status", &answer, &why);
	if (!err && (answer.code || strncmp(answer.text.data, RUNNING, strlen(RUNNING))))
		err = -ENOENT;
	recorder_answer_release(&answer);
	if (err)
		close(connection);
	return err ? err : connection;
}

static bool is_left_out(const char *word)
{
	static const char *const names[] = {"file=", "log=", "loglevel="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(word, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Without its file, a report still has the format of the file's extension. */
static void compose(const struct asprof_arguments *arguments, const char *words, struct buf *ret)
{
	char *copy = strdup(words), *rest = copy, *word;

	while (rest && (word = strsep(&rest, ",")) != NULL)
		if (*word && !is_left_out(word))
			buf_printf(ret, "%s%s", ret->len ? "," : "", word);
	free(copy);
	if (arguments->file && arguments->writer)
		buf_printf(ret, ",%s", arguments->writer->name);
}

int peer_recorder_request(int connection, const struct asprof_arguments *arguments, const char *words,
			  struct recorder_answer *ret, struct buf *why)
{
	BUF(left);

	compose(arguments, words, &left);
	return left.failed ? -ENOMEM : ask(connection, left.data, ret, why);
}

void peer_recorder_answer(int connection, const struct asprof_arguments *arguments, const char *words,
			  struct recorder_answer *answer)
{
	struct recorder_answer got = RECORDER_ANSWER_NONE;
	BUF(why);

	if (peer_recorder_request(connection, arguments, words, &got, &why)) {
		answer->code = DUET_ANSWER_REFUSED;
		buf_add_str(&answer->text, why.data);
	} else {
		answer->code = got.code;
		buf_add_str(&answer->text, got.text.data);
		answer->report = got.report;
		got.report = -1;
	}
	recorder_answer_release(&got);
}
