/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"

#define ERASE_LINE "\r\033[K"

static enum log_level max_level = LOG_INFO;
static bool progress_shown;
static const char *context = "";
static void (*writer)(enum log_level level, const char *text);

void log_set_level(enum log_level level)
{
	max_level = level;
}

enum log_level log_level(void)
{
	return max_level;
}

/* One write, so that lines of several threads and of the profiled command do not mix. */
static void log_write(const struct buf *text)
{
	(void)io_write_all(STDERR_FILENO, text->data, text->len);
}

/* Makes the message safe to print: it may hold text from other processes, which a terminal must not interpret. */
static void add_message(struct buf *line, const char *format, va_list args)
{
	BUF(text);

	buf_vprintf(&text, format, args);
	text_add_line(line, text.data);
}

void log_set_writer(void (*write)(enum log_level level, const char *text))
{
	writer = write;
}

void log_set_context(const char *text)
{
	context = text ? text : "";
}

/* True if stderr is the journal. JOURNAL_STREAM has its "device:inode"; stderr may be redirected since. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(STDERR_FILENO, &st) &&
	       st.st_dev == device && st.st_ino == inode;
}

void log_print(enum log_level level, const char *format, ...)
{
	static const char *const prefixes[] = {"duet: error: ", "duet: warning: ", "duet: ", "duet: debug: "};
	static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
	BUF(line);
	va_list args;

	if (level > max_level)
		return;
	if (progress_shown)
		buf_add_str(&line, ERASE_LINE);
	progress_shown = false;
	if (!writer)
		buf_add_str(&line, is_journal() ? priorities[level] : prefixes[level]);
	text_add_line(&line, context);
	va_start(args, format);
	add_message(&line, format, args);
	va_end(args);
	if (writer)
		return writer(level, line.data);
	buf_add_char(&line, '\n');
	log_write(&line);
}

void log_progress(const char *format, ...)
{
	BUF(line);
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	buf_add_str(&line, ERASE_LINE);
	va_start(args, format);
	add_message(&line, format, args);
	va_end(args);
	progress_shown = line.len > sizeof(ERASE_LINE) - 1;
	log_write(&line);
}
