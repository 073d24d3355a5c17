/* SPDX-License-Identifier: MIT */
/* Messages for the user, on stderr. Below session and cmd only log_debug(): the layer that decides prints. */
#pragma once

#include <errno.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Messages of a level above `level` are not printed. The level at start is LOG_INFO. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Sets a prefix for the following messages, such as "file:line: "; NULL for none. The string is not copied. */
void log_set_context(const char *context);

/* Messages of allowed levels go to `write`, without what is printed before the text; NULL: to stderr. */
void log_set_writer(void (*write)(enum log_level level, const char *text));

/*
 * Prints one line "duet: text". If stderr goes to journald, as JOURNAL_STREAM says, prints "<priority>text" as in
 * sd-daemon(3). Clears a progress line on the terminal first.
 */
__attribute__((format(printf, 2, 3))) void log_print(enum log_level level, const char *format, ...);

#define log_error(...) log_print(LOG_ERROR, __VA_ARGS__)
#define log_fail(err, ...) (log_error(__VA_ARGS__), (err)) /* reports an error, and is its number: to return it */
#define log_refuse(...) log_fail(-EINVAL, __VA_ARGS__) /* of what was given wrong */
#define log_warn(...) log_print(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_print(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_print(LOG_DEBUG, __VA_ARGS__)

/* Replaces the progress line if stderr is a terminal, else does nothing. "" removes the line. */
__attribute__((format(printf, 1, 2))) void log_progress(const char *format, ...);
