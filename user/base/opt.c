/* SPDX-License-Identifier: MIT */
#include "base/opt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define HELP_COLUMN 30
#define BILLION 1000000000u

/* The command line, and the index of the next word to read. */
struct opt_cursor {
	int argc;
	char **argv;
	int at;
};

/* Where a reader of the rows is. */
struct row_cursor {
	const struct opt *next, *after; /* after: where to go on when the rows of another table end; NULL: the end */
};

/* Returns the next row, or NULL at the end. */
static const struct opt *next_row(struct row_cursor *at)
{
	for (;;) {
		const struct opt *row = at->next++;

		if (row->rows)
			*at = (struct row_cursor){row->rows(), at->next};
		else if (row->letter || row->word || row->help)
			return row;
		else if (!at->after)
			return NULL;
		else
			*at = (struct row_cursor){at->after, NULL};
	}
}

static bool is_word(const struct opt *row, const char *text, size_t len)
{
	return row->word && strlen(row->word) == len && !memcmp(row->word, text, len);
}

/* Finds a row by its letter, or, if that is 0, by its word. */
static const struct opt *find_row(const struct opt *rows, char letter, const char *word, size_t len)
{
	struct row_cursor at = {rows, NULL};
	const struct opt *row;

	while ((row = next_row(&at)))
		if (letter ? row->letter == letter : is_word(row, word, len))
			return row;
	return NULL;
}

const struct opt *opt_by_word(const struct opt *rows, const char *word)
{
	return find_row(rows, 0, word, strlen(word));
}

const struct opt *opt_by_spelling(const struct opt *rows, const char *spelling)
{
	if (!strncmp(spelling, "--", 2))
		return opt_by_word(rows, spelling + 2);
	return spelling[0] == '-' && strlen(spelling) == 2 ? find_row(rows, spelling[1], "", 0) : NULL;
}

/* Appends what a word that no row has may have been meant to be, in a command line or in a configuration. */
static void guess_word(const struct opt *rows, const char *word, size_t len, bool is_config, struct buf *why)
{
	struct row_cursor at = {rows, NULL};
	char typed[TEXT_DISTANCE_MAX + 2];
	struct text_guess guess = {.typed = typed};
	const struct opt *row;

	snprintf(typed, sizeof(typed), "%.*s", (int)len, word);
	while ((row = next_row(&at)))
		if (row->word && !(is_config && row->scope & OPT_NOT_CONFIG))
			text_guess(&guess, row->word);
	text_add_guess(&guess, is_config ? "" : "--",
		       is_config ? "duet.conf(5) lists the words" : "--help lists the options", why);
}

bool opt_is_repeated(const struct opt *row)
{
	return row->parse == opt_strings;
}

/* Returns the row of an argument with '-', or NULL: not an option. *ret_glued: the value in it, or NULL. */
static const struct opt *find_option(const struct opt *rows, const char *arg, const char **ret_glued)
{
	const struct opt *row;
	size_t len;

	if (arg[1] == '-') {
		len = strcspn(arg + 2, "=");
		*ret_glued = arg[2 + len] ? arg + 2 + len + 1 : NULL;
		return find_row(rows, 0, arg + 2, len);
	}
	row = find_row(rows, arg[1], "", 0);
	*ret_glued = arg[2] ? arg + 2 : NULL;
	if (row && *ret_glued && is_word(row, arg + 1, strcspn(arg + 1, "="))) /* -event is not -e vent */
		return NULL;
	return row && !row->value && *ret_glued ? NULL : row;
}

static int store(const struct opt *row, const char *name, int name_len, const char *value, void *options,
		 struct buf *why)
{
	BUF(reason);
	int err = row->parse((char *)options + row->offset, value, &reason);

	if (err < 0)
		buf_printf(why, "%.*s '%s': %s", name_len, name, value ? value : "", reason.data);
	return err;
}

static int parse_option(const struct opt *rows, struct opt_cursor *cursor, void *options, struct buf *why)
{
	const char *arg = cursor->argv[cursor->at++];
	int name_len = arg[1] == '-' ? (int)strcspn(arg, "=") : 2;
	const char *value;
	const struct opt *row = find_option(rows, arg, &value);

	if (!row) {
		buf_printf(why, "unknown option '%s'", arg);
		arg += strspn(arg, "-");
		guess_word(rows, arg, strcspn(arg, "="), false, why);
		return -EINVAL;
	}
	if (!row->value && value && !(row->scope & OPT_MAY_HAVE_VALUE))
		return buf_explain(why, -EINVAL, "option '%.*s' takes no value, see --help", name_len, arg);
	if (row->value && !value) {
		if (cursor->at == cursor->argc || !strcmp(cursor->argv[cursor->at], "--"))
			return buf_explain(why, -EINVAL, "option '%s' needs a value (%s), see --help", arg, row->value);
		value = cursor->argv[cursor->at++];
	}
	return store(row, arg, name_len, value, options, why);
}

int opt_parse(const struct opt *rows, int argc, char **argv, void *options, char **ret_args, int *ret_count,
	      int *ret_dashdash, struct buf *why)
{
	struct opt_cursor cursor = {argc, argv, 1};
	int err = 0;

	*ret_count = 0;
	*ret_dashdash = -1;
	while (!err && cursor.at < argc) {
		char *arg = argv[cursor.at];

		if (*ret_dashdash < 0 && !strcmp(arg, "--")) {
			*ret_dashdash = *ret_count;
			cursor.at++;
		} else if (*ret_dashdash >= 0 || arg[0] != '-' || !arg[1]) {
			ret_args[(*ret_count)++] = arg;
			cursor.at++;
		} else {
			err = parse_option(rows, &cursor, options, why);
		}
	}
	return err;
}

int opt_set(const struct opt *rows, const char *word, const char *value, void *options, struct buf *why)
{
	const struct opt *row = opt_by_word(rows, word);

	if (!row) {
		buf_printf(why, "unknown word '%s'", word);
		guess_word(rows, word, strlen(word), true, why);
		return -EINVAL;
	}
	if (row->value)
		return store(row, word, (int)strlen(word), value, options, why);
	if (!strcmp(value, "yes"))
		return store(row, word, (int)strlen(word), NULL, options, why);
	if (!strcmp(value, "no"))
		return 0;
	return buf_explain(why, -EINVAL, "%s '%s': yes or no is accepted", word, value);
}

/* Number of columns on a terminal. Continuation bytes of UTF-8 take no column. */
static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

/* Appends " (one, two)". */
static void help_choices(const struct opt *row, struct buf *out)
{
	BUF(words);

	row->choices(&words);
	for (char *rest = words.data, *word; (word = strsep(&rest, "\n")) && *word;)
		buf_printf(out, "%s%s", word == words.data ? " (" : ", ", word);
	buf_add_char(out, ')');
}

static void help_row(const struct opt *row, bool has_choices, struct buf *out)
{
	BUF(spelling);
	size_t columns;

	if (row->letter)
		buf_printf(&spelling, "  -%c%s", row->letter, row->word ? ", " : "");
	else
		buf_add_str(&spelling, "      ");
	if (row->word)
		buf_printf(&spelling, "--%s", row->word);
	if (row->value)
		buf_printf(&spelling, " %s", row->value);
	columns = columns_of(spelling.data);
	buf_add_str(out, spelling.data);
	if (columns >= HELP_COLUMN) {
		buf_add_char(out, '\n');
		columns = 0;
	}
	buf_printf(out, "%*s%s", (int)(HELP_COLUMN - columns), "", row->help);
	if (has_choices && row->choices && !(row->scope & OPT_OF_HOST))
		help_choices(row, out);
	buf_add_char(out, '\n');
}

size_t opt_help(const struct opt *rows, bool is_short, struct buf *out)
{
	struct row_cursor at = {rows, NULL};
	const struct opt *row, *heading = NULL;
	size_t count = 0;

	while ((row = next_row(&at))) {
		bool is_option = row->letter || row->word;

		count += is_option;
		if (!is_option)
			heading = row;
		if (!is_option || (is_short && !row->is_short))
			continue;
		if (heading)
			buf_printf(out, "%s%s:\n", is_short || heading != rows ? "\n" : "", heading->help);
		heading = NULL;
		help_row(row, !is_short, out);
	}
	return count;
}

void opt_spellings(const struct opt *rows, struct buf *out)
{
	struct row_cursor at = {rows, NULL};
	const struct opt *row;

	while ((row = next_row(&at))) {
		if (row->letter)
			buf_printf(out, "-%c\t%s\n", row->letter, row->help);
		if (row->word)
			buf_printf(out, "--%s\t%s\n", row->word, row->help);
	}
}

int opt_flag(void *field, const char *value, struct buf *why)
{
	*(bool *)field = true;
	return 0;
}

int opt_string(void *field, const char *value, struct buf *why)
{
	if (!value[0])
		return buf_explain(why, -EINVAL, "the value must not be empty");
	*(const char **)field = value;
	return 0;
}

int opt_strings(void *field, const char *value, struct buf *why)
{
	struct opt_strings *strings = field;
	const char **grown;
	int err;

	grown = reallocarray(strings->items, strings->len + 1, sizeof(*grown));
	if (!grown)
		return buf_explain(why, -ENOMEM, "out of memory");
	strings->items = grown;
	err = opt_string(&grown[strings->len], value, why);
	if (!err)
		strings->len++;
	return err;
}

/* Accepts digits only: no sign, space or base prefix. Returns false when there are none or the number does not fit. */
static bool parse_digits(const char *text, const char **ret_end, uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	*ret_end = end;
	return !errno;
}

struct opt_unit {
	const char *suffix;
	uint64_t factor;
};

/* Parses what follows the digits of a whole number: "" or ".5". Returns billionths; further digits are dropped. */
static bool parse_fraction(const char **text, uint64_t *ret_billionths)
{
	const char *at = *text;
	uint64_t place = BILLION;

	*ret_billionths = 0;
	if (*at != '.')
		return true;
	while (isdigit((unsigned char)*++at)) {
		place /= 10;
		*ret_billionths += place * (uint64_t)(*at - '0');
	}
	*text = at;
	return isdigit((unsigned char)at[-1]);
}

/* Parses a decimal number with one of the units. Drops what is less than 1. `units` ends with a row without suffix. */
static bool parse_amount(const char *text, const struct opt_unit *units, uint64_t *ret)
{
	uint64_t number, billionths;
	const char *end;

	if (!parse_digits(text, &end, &number) || !parse_fraction(&end, &billionths))
		return false;
	for (; units->suffix; units++) {
		unsigned __int128 amount = (unsigned __int128)number * units->factor +
					   (unsigned __int128)billionths * units->factor / BILLION;

		if (strcmp(units->suffix, end) != 0)
			continue;
		if (amount <= UINT64_MAX)
			*ret = (uint64_t)amount;
		return amount <= UINT64_MAX;
	}
	return false;
}

int opt_u32_up_to(uint32_t most, void *field, const char *value, struct buf *why)
{
	const char *end;
	uint64_t number;

	if (!parse_digits(value, &end, &number) || *end || !number || number > most)
		return buf_explain(why, -EINVAL, "a whole number from 1 to %u is accepted", most);
	*(uint32_t *)field = (uint32_t)number;
	return 0;
}

int opt_u32(void *field, const char *value, struct buf *why)
{
	return opt_u32_up_to(UINT32_MAX, field, value, why);
}

int opt_interval(void *field, const char *value, struct buf *why)
{
	static const struct opt_unit units[] = {
		{"", 1}, {"ns", 1}, {"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_SEC}, {NULL, 0},
	};
	uint64_t ns;

	if (!parse_amount(value, units, &ns) || !ns)
		return buf_explain(why, -EINVAL,
				   "a number above 0 in ns, us, ms or s is accepted (10ms, 0.5ms, 1s; no unit is ns)");
	*(uint64_t *)field = ns;
	return 0;
}

int opt_seconds_or_0(void *field, const char *value, struct buf *why)
{
	static const struct opt_unit units[] = {
		{"", NS_PER_SEC},	  {"ms", NS_PER_MS},	     {"s", NS_PER_SEC}, {"m", 60 * NS_PER_SEC},
		{"h", 3600 * NS_PER_SEC}, {"d", 86400 * NS_PER_SEC}, {NULL, 0},
	};

	if (parse_amount(value, units, field))
		return 0;
	return buf_explain(why, -EINVAL, "a number in ms, s, m, h or d is accepted (30, 0.5s, 1h; no unit is s)");
}

int opt_seconds(void *field, const char *value, struct buf *why)
{
	uint64_t ns;
	int err = opt_seconds_or_0(&ns, value, why);

	if (err < 0)
		return err;
	if (!ns)
		return buf_explain(why, -EINVAL, "a time above 0 is accepted");
	*(uint64_t *)field = ns;
	return 0;
}

int opt_bytes(void *field, const char *value, struct buf *why)
{
	static const struct opt_unit units[] = {
		{"", 1},	{"k", 1 << 10}, {"K", 1 << 10}, {"m", 1 << 20},
		{"M", 1 << 20}, {"g", 1 << 30}, {"G", 1 << 30}, {NULL, 0},
	};
	uint64_t bytes;

	if (!parse_amount(value, units, &bytes) || !bytes)
		return buf_explain(why, -EINVAL,
				   "a number above 0 is accepted, followed by k, m or g (128m; no unit is bytes)");
	*(uint64_t *)field = bytes;
	return 0;
}

int opt_percent(void *field, const char *value, struct buf *why)
{
	char *end;
	double percent = strtod(value, &end);

	if (!isdigit((unsigned char)value[0]) || (*end && strcmp(end, "%")) || !(percent > 0) || percent > 100)
		return buf_explain(why, -EINVAL, "a number above 0 and at most 100 is accepted (1, 0.5)");
	*(double *)field = percent;
	return 0;
}
