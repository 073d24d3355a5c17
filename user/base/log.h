/* SPDX-License-Identifier: MIT */
/*
 * Messages for the person at the terminal, on stderr. Below session and cmd
 * only log_debug() may be used: what decides, prints.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Messages above `level` are not printed. Starts at LOG_INFO. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Stands before what follows, "file:line: "; NULL for nothing. Not copied. */
void log_set_context(const char *context);

/*
 * One line "duet: text", or for journald, when JOURNAL_STREAM says that it reads stderr, "<priority>text" as in
 * sd-daemon(3). A progress line on the terminal is cleared first.
 */
__attribute__((format(printf, 2, 3))) void log_print(enum log_level level, const char *format, ...);

#define log_error(...) log_print(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_print(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_print(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_print(LOG_DEBUG, __VA_ARGS__)

/* Replaces the progress line when stderr is a terminal, does nothing otherwise. "" removes it. */
__attribute__((format(printf, 1, 2))) void log_progress(const char *format, ...);

#endif
