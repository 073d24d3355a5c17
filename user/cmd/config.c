/* SPDX-License-Identifier: MIT */
#include "cmd/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "cmd/record.h"

#define CONFIG_MAX_BYTES 65536
#define WORDS_MAX 64

struct config_reader {
	struct config *config;
	const char *path;
	const char *words[WORDS_MAX]; /* words given so far */
	unsigned lines[WORDS_MAX]; /* and the lines that they are in */
	size_t count;
	unsigned line;
};

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text + strspn(text, " \t\r");
}

/* Refuses a word that is given twice. */
static int check_twice(struct config_reader *reader, const char *word, struct buf *why)
{
	for (size_t i = 0; i < reader->count; i++)
		if (!strcmp(word, reader->words[i]))
			return buf_explain(why, -EINVAL, "'%s' is given twice, first in line %u", word,
					  reader->lines[i]);
	if (reader->count < WORDS_MAX) {
		reader->words[reader->count] = word;
		reader->lines[reader->count++] = reader->line;
	}
	return 0;
}

static int set_word(struct config_reader *reader, char *line, struct buf *why)
{
	char *equals = strchr(line, '='), *word, *value;
	const struct opt *row;
	int err = 0;

	if (!equals)
		return buf_explain(why, -EINVAL, "'%s' is not of the form \"word = value\"", line);
	*equals = '\0';
	word = trim(line);
	value = trim(equals + 1);
	row = record_option(word);
	if (!row || !opt_is_repeated(row))
		err = check_twice(reader, word, why);
	/* Those of the output files may change during a recording. A sum: the order of words does not matter. */
	if (!err && !(row && row->scope & OPT_OF_FILES))
		reader->config->sampling += hash_bytes(value, strlen(value), hash_bytes(word, strlen(word), 0));
	return err ? err : record_options_set(&reader->config->options, word, value, why);
}

/* Checks all lines so far together, in a copy, and reports the error. */
static int check(const struct config_reader *reader)
{
	struct options options = reader->config->options;
	int err = record_options_finish_daemon(&options);

	record_options_unfinish(&options);
	return err;
}

static int read_line(struct config_reader *reader, char *line)
{
	BUF(why);
	BUF(context);
	int err = 0;

	line = trim(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	buf_printf(&context, "%s:%u: ", reader->path, reader->line);
	log_set_context(context.data);
	err = set_word(reader, line, &why);
	if (err < 0)
		log_error("%s", why.data);
	else
		err = check(reader);
	log_set_context(NULL);
	return err;
}

static int read_lines(struct config_reader *reader)
{
	char *next = reader->config->text;
	int err = 0;

	while (!err && next) {
		reader->line++;
		err = read_line(reader, strsep(&next, "\n"));
	}
	return err;
}

/* The file says where the daemon writes, so nobody else may change it. A group may, unless the daemon is root's. */
static bool is_trusted(int fd)
{
	struct stat st;
	mode_t others = geteuid() ? S_IWOTH : S_IWGRP | S_IWOTH;

	return fstat(fd, &st) == 0 && (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & others);
}

/* Returns 0 or -errno: -EPERM when others may change the file. */
static int read_trusted(const char *path, struct buf *text)
{
	IO_FD(fd) = open(path, O_PATH | O_CLOEXEC);
	char same[32];

	if (fd < 0)
		return -errno;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", fd);
	return is_trusted(fd) ? io_read_file(AT_FDCWD, same, CONFIG_MAX_BYTES, text) : -EPERM;
}

static int read_text(const char *path, bool is_optional, char **ret_text)
{
	BUF(text);
	int err = read_trusted(path, &text);

	if (err == -ENOENT && is_optional)
		err = 0;
	if (!err && strlen(text.data) != text.len)
		err = -EILSEQ;
	if (err < 0)
		log_error("%s: %s", path,
			  err == -EFBIG	   ? "larger than 64 kB, the limit for a configuration"
			  : err == -EILSEQ ? "not a text file: it contains a NUL byte"
			  : err == -EPERM  ? "other users may change it, and duet does what it says: chown and chmod "
					     "it so that only its owner, you or root, may write to it"
					   : strerror(-err));
	else
		*ret_text = buf_detach(&text);
	return err;
}

int config_read(struct config *config, const char *path, const char *folder, bool is_optional)
{
	struct config_reader reader = {.config = config, .path = path};
	int err;

	*config = (struct config){0};
	err = read_text(path, is_optional, &config->text);
	if (err < 0)
		return err;
	record_options_init(&config->options);
	config->options.folder.folder = folder;
	err = config->text ? read_lines(&reader) : -ENOMEM;
	if (!err)
		err = record_options_finish_daemon(&config->options);
	if (err < 0)
		config_release(config);
	return err;
}

void config_release(struct config *config)
{
	record_options_release(&config->options);
	free(config->text);
	*config = (struct config){0};
}
