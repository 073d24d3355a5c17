/* SPDX-License-Identifier: MIT */
/*
 * Command-line options from tables. A row names an option and the parser that stores its value. --help, the
 * configuration file and shell completion use the same rows. Options may appear anywhere before `--`. --word=value and
 * --word value are the same, and so are -i5ms and -i 5ms.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct opt {
	char letter;	  /* 0 for none */
	const char *word; /* NULL for none */
	const char *value; /* name of the value in --help; NULL for a switch */
	const char *help;  /* one line; in a row without letter and word: the heading of the rows that follow */
	/* Stores the value at `offset` of the struct. 0, or -EINVAL; `why` says in a sentence what is accepted. */
	int (*parse)(void *field, const char *value, struct buf *why);
	size_t offset;
	unsigned scope; /* bits of enum opt_scope */
	/* Appends the possible values, one per line, for completion. NULL if they cannot be listed. */
	void (*choices)(struct buf *out);
	/* For a row that stands for others, and has nothing else: rows made of another table, ending with OPT_END. */
	const struct opt *(*rows)(void);
	bool is_short; /* it is in the short help of a long table */
};

enum opt_scope {
	OPT_OF_FILES = 1 << 0, /* it shapes the output, so it may change during a recording */
	OPT_NOT_CONFIG = 1 << 1, /* not allowed in the configuration file */
	OPT_OF_HOST = 1 << 2, /* its choices are what runs here now: --help does not have them */
	OPT_MAY_HAVE_VALUE = 1 << 3, /* a switch that also takes --word=value */
};

/* clang-format off */
#define OPT_GROUP(heading) {.help = (heading)}
#define OPT_END {0}
/* clang-format on */

/*
 * Parses argv[1..argc) into `options`, the caller's struct with defaults already set. `rows` ends with OPT_END. Words
 * that are not options are appended in order to ret_args, which has room for argc. After "--" every word is copied, and
 * *ret_dashdash is the index of the first of them in ret_args (-1 without "--"). Returns 0, or -EINVAL with one
 * sentence in `why`; then the words are those before the wrong one.
 */
int opt_parse(const struct opt *rows, int argc, char **argv, void *options, char **ret_args, int *ret_count,
	      int *ret_dashdash, struct buf *why);
/* Sets one option by its word, as in a configuration file. A switch takes yes or no. Returns as opt_parse(). */
int opt_set(const struct opt *rows, const char *word, const char *value, void *options, struct buf *why);
const struct opt *opt_by_word(const struct opt *rows, const char *word); /* returns NULL when there is none */
/* Finds a row by "-x" or "--word". Returns NULL when there is none. */
const struct opt *opt_by_spelling(const struct opt *rows, const char *spelling);
bool opt_is_repeated(const struct opt *row); /* true if each use adds a value */
/*
 * Appends two columns, option and help, one row per option; `is_short`: for the rows that are short, without their
 * choices. Returns the number of all options.
 */
size_t opt_help(const struct opt *rows, bool is_short, struct buf *out);
/* Appends one line per spelling, for completion: "-x\thelp" or "--word\thelp". */
void opt_spellings(const struct opt *rows, struct buf *out);

/* For a parser whose number has an upper bound: [uint32_t] 1 to `most`. */
int opt_u32_up_to(uint32_t most, void *field, const char *value, struct buf *why);

/* Parsers, with the type of the field in brackets. */
int opt_flag(void *field, const char *value, struct buf *why);	   /* [bool] = true */
int opt_string(void *field, const char *value, struct buf *why);   /* [const char *], refuses "" */
int opt_strings(void *field, const char *value, struct buf *why);  /* [struct opt_strings] appends */
int opt_u32(void *field, const char *value, struct buf *why);	   /* [uint32_t] > 0 */
int opt_interval(void *field, const char *value, struct buf *why); /* [uint64_t ns] 10ms, 0.5ms, 1s, 100000 (ns); > 0 */
int opt_seconds(void *field, const char *value, struct buf *why);  /* [uint64_t ns] 30, 0.5s, 500ms, 10m, 1h, 1d; > 0 */
int opt_seconds_or_0(void *field, const char *value, struct buf *why); /* the same, or 0 */
int opt_bytes(void *field, const char *value, struct buf *why);	   /* [uint64_t] 128m, 1.5g, 64k, 1000000; > 0 */
int opt_percent(void *field, const char *value, struct buf *why);  /* [double] 0.5, 1, 1%; above 0, at most 100 */

enum command_help {
	COMMAND_HELP_NONE,
	COMMAND_HELP_SHORT, /* of a table longer than a screen: only the rows that are short */
	COMMAND_HELP_ALL,
};

struct opt_strings {
	const char **items;
	size_t len;
};
