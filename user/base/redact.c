/* SPDX-License-Identifier: MIT */
#include "base/redact.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define REDACTED "[redacted]"
#define NAME_MAX_BYTES 256 /* of a name, its end is looked at */

static bool is_off;

void redact_set(bool is_on)
{
	is_off = !is_on;
}

bool redact_is_on(void)
{
	return !is_off;
}

/* ---- the table ---- */

enum place {
	ANYWHERE, /* in a name without its dots, dashes and underscores */
	AT_END, /* of such a name */
	LAST_WORD /* of the name: the words of "api.ssl-keyFile" are api, ssl, key and File */
};

/* Names of secrets, in any case. Those of JDK 27's flight recorder are among them. `but`: names with one of these. */
static const struct {
	const char *part;
	enum place place;
	const char *but;
} names[] = {
	{"password", ANYWHERE, ""},
	{"passwd", ANYWHERE, ""},
	{"passphrase", ANYWHERE, ""},
	{"passcode", ANYWHERE, ""},
	{"pwd", ANYWHERE, "oldpwd"},
	{"secret", ANYWHERE, "secretary"},
	{"token", ANYWHERE, "tokeniz maxtoken"},
	{"credential", ANYWHERE, ""},
	{"privatekey", ANYWHERE, ""},
	{"apikey", ANYWHERE, ""},
	{"accesskey", ANYWHERE, ""},
	{"accountkey", ANYWHERE, ""},
	{"encryptionkey", ANYWHERE, ""},
	{"jaasconfig", ANYWHERE, ""},
	{"authoriz", ANYWHERE, ""},
	{"auth", ANYWHERE, "author"},
	{"pass", AT_END, "bypass compass"},
	{"key", LAST_WORD, "primarykey publickey foreignkey partitionkey sortkey groupkey cachekey"},
};

/* What is a secret by its form, whatever stands before it. */
static const struct {
	const char *begin;
	size_t least_bytes;
} forms[] = {
	{"AKIA", 20},	     {"ASIA", 20},   {"ghp_", 30},  {"gho_", 30},  {"ghs_", 30},
	{"github_pat_", 30}, {"glpat-", 20}, {"xoxb-", 20}, {"xoxp-", 20}, {"eyJ", 40} /* a JSON web token */,
};

/* Options that mean a secret in these programs, and in those whose names go on with letters: mysqldump. */
static const struct {
	const char *program, *option;
	bool is_joined, is_next; /* the value may follow in the same argument, and in the next one */
} options[] = {
	{"mysql", "-p", true, false}, {"mariadb", "-p", true, false},  {"sshpass", "-p", true, true},
	{"curl", "-u", true, true},   {"curl", "--user", false, true}, {"curl", "--proxy-user", false, true},
	{"redis", "-a", true, true},  {"ldap", "-w", true, true},      {"mongo", "-p", false, true},
};

static bool has_one(const char *text, const char *words)
{
	char word[32];

	for (size_t len; *words; words += len, words += *words == ' ') {
		len = strcspn(words, " ");
		memcpy(word, words, len);
		word[len] = '\0';
		if (strstr(text, word))
			return true;
	}
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

struct name {
	char text[NAME_MAX_BYTES + 1]; /* in small letters, without dots, dashes and underscores */
	size_t last; /* where its last word begins */
};

static void take_name(struct name *name, const char *text, size_t len)
{
	size_t count = 0;
	char before = '.';

	name->last = 0;
	if (len > NAME_MAX_BYTES) {
		text += len - NAME_MAX_BYTES;
		len = NAME_MAX_BYTES;
	}
	for (size_t i = 0; i < len; before = text[i++]) {
		if (!isalnum((unsigned char)text[i]))
			continue;
		if (!isalnum((unsigned char)before) ||
		    (isupper((unsigned char)text[i]) && !isupper((unsigned char)before)))
			name->last = count;
		name->text[count++] = (char)tolower((unsigned char)text[i]);
	}
	name->text[count] = '\0';
}

/* `at_end`: only names that end with what says that they are a secret, as those of options before their value do. */
static bool is_secret(const char *text, size_t len, bool at_end)
{
	struct name name;

	take_name(&name, text, len);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *part = names[i].part;
		bool is_there = names[i].place == LAST_WORD	     ? !strcmp(name.text + name.last, part)
				: names[i].place == AT_END || at_end ? ends_with(name.text, part)
								     : strstr(name.text, part) != NULL;

		if (is_there && strcmp(name.text, "pwd") != 0 && !has_one(name.text, names[i].but))
			return true;
	}
	return false;
}

/* ---- one word ---- */

enum next {
	NEXT_ANY,
	NEXT_SECRET,
	NEXT_HEADER /* a secret, perhaps after the name of its scheme: "Bearer" */
};

struct redaction {
	struct buf *out;
	enum next next; /* what the next word is */
	const char *program; /* of `options`; NULL: none of them */
};

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static const char *end_of_name(const char *at, const char *end)
{
	while (at < end && is_of_name(*at))
		at++;
	return at;
}

static const char *end_of_word(const char *at, const char *end)
{
	while (at < end && !isspace((unsigned char)*at))
		at++;
	return at;
}

/* Skips what may stand around a name in JSON that is in a shell's words. */
static const char *skip_quotes(const char *at, const char *end)
{
	while (at < end && (*at == '\\' || *at == '"' || *at == '\''))
		at++;
	return at;
}

/* Where a value ends: at the quote that it began with, or at a separator like that before its name, or at a blank. */
static const char *end_of_value(const char *at, const char *end, char before)
{
	const char *quote = at;

	if ((size_t)(end - at) >= strlen(REDACTED) && !memcmp(at, REDACTED, strlen(REDACTED)))
		return at + strlen(REDACTED);
	while (quote < end && *quote == '\\')
		quote++;
	if (quote < end && (*quote == '"' || *quote == '\'')) {
		const char *close = memchr(quote + 1, *quote, (size_t)(end - quote - 1));

		return close ? close + 1 : end;
	}
	end = end_of_word(at, end);
	before = before == '?' ? '&' : before;
	if (before == '&' || before == ',' || before == ';') {
		const char *separator = memchr(at, before, (size_t)(end - at));

		end = separator ? separator : end;
	}
	return end;
}

/* Puts the value up to `end`, which is a secret: one that says yes or no is none. Returns its end. */
static const char *put_secret(struct redaction *r, const char *at, const char *end)
{
	size_t len = (size_t)(end - at);

	if ((len == 4 && !strncasecmp(at, "true", 4)) || (len == 5 && !strncasecmp(at, "false", 5)) || !len)
		buf_add(r->out, at, len);
	else
		buf_add_str(r->out, REDACTED);
	return end;
}

static bool has_form(const char *at, size_t len)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (len >= forms[i].least_bytes && !memcmp(at, forms[i].begin, strlen(forms[i].begin)))
			return true;
	return false;
}

/*
 * Returns the '@' that ends the user and the password at the begin of an address, or NULL if it has none. A password
 * may have a slash, so the '@' may come after one. "host:8080/a@b" has no password: a port has only digits.
 */
static const char *end_of_user(const char *at, const char *end)
{
	const char *authority = at, *colon, *user;

	while (authority < end && !strchr("/?#\"'", *authority))
		authority++;
	user = memrchr(at, '@', (size_t)(authority - at));
	colon = memchr(at, ':', (size_t)(authority - at));
	if (user || !colon || colon + 1 == authority || isdigit((unsigned char)colon[1]) || *at == '[')
		return user;
	return memchr(authority, '@', (size_t)(end - authority));
}

/* The same of Oracle's, which have no "//": jdbc:oracle:thin:scott/tiger@host. Sets where they begin. */
static const char *end_of_oracle(const char *at, const char *end, const char **ret_begin)
{
	static const char oracle[] = "jdbc:oracle:";
	const char *driver = at + strlen(oracle), *colon;

	if (driver >= end || memcmp(at, oracle, strlen(oracle)) != 0)
		return NULL;
	colon = memchr(driver, ':', (size_t)(end - driver));
	*ret_begin = colon ? colon + 1 : end;
	return memchr(*ret_begin, '@', (size_t)(end - *ret_begin));
}

/* Puts an address up to its user, who is left out. Returns what is next; `at`: there is none. */
static const char *put_user(struct redaction *r, const char *at, const char *end)
{
	const char *begin = at + 3, *user = NULL;

	if (end - at > 3 && !memcmp(at, "://", 3))
		user = end_of_user(begin, end);
	else if (*at == 'j')
		user = end_of_oracle(at, end, &begin);
	if (!user)
		return at;
	buf_add(r->out, at, (size_t)(begin - at));
	return put_secret(r, begin, user);
}

/* Without dashes, and the D of a property. */
static const char *begin_of_name(const char *at, const char *end)
{
	const char *name = at;

	while (name < end && *name == '-')
		name++;
	return name - at == 1 && name < end && *name == 'D' ? name + 1 : name;
}

/* Puts what begins with a name: the name, and its value if that is a secret. Returns what is next. */
static const char *put_name(struct redaction *r, const char *at, const char *word_end, const char *end, char before)
{
	const char *name = begin_of_name(at, word_end), *name_end = end_of_name(at, word_end);
	const char *sign = skip_quotes(name_end, word_end);
	bool is_given = sign < word_end && (*sign == '=' || *sign == ':'), has_value = sign + 1 < word_end;

	if (has_form(at, (size_t)(name_end - at)))
		return put_secret(r, at, name_end);
	if (!is_given || name >= name_end || !is_secret(name, (size_t)(name_end - name), false)) {
		buf_add(r->out, at, (size_t)(name_end - at));
		return name_end;
	}
	if (has_value && *sign == ':' && sign == name_end) { /* no value, but a path or an address */
		buf_add(r->out, at, (size_t)(name_end - at));
		return name_end;
	}
	buf_add(r->out, at, (size_t)(sign + 1 - at));
	if (has_value)
		return put_secret(r, sign + 1, end_of_value(sign + 1, end, before));
	r->next = *sign == ':' ? NEXT_HEADER : NEXT_ANY;
	return sign + 1;
}

/* Puts what stands at `at`: a name, perhaps with its value, an address, or one character. Returns what is next. */
static const char *put_part(struct redaction *r, const char *at, const char *word_end, const char *end, char before)
{
	const char *next = put_user(r, at, word_end);

	if (next > at)
		return next;
	if (is_of_name(*at))
		return put_name(r, at, word_end, end, before);
	buf_add_char(r->out, *at);
	return at + 1;
}

/* True for an option whose value, in the next argument, is a secret: --token. */
static bool wants_secret(const char *at, const char *end)
{
	const char *name = at;
	size_t len;

	while (name < end && *name == '-')
		name++;
	len = (size_t)(end - name);
	if (name == at || begin_of_name(at, end) > name || end_of_name(name, end) < end ||
	    (len > 3 && !memcmp(name, "no-", 3)))
		return false;
	return is_secret(name, len, true) || (len && end[-1] == 's' && is_secret(name, len - 1, true));
}

/* True for an option, but for a value that only looks like one. */
static bool is_option(const char *at, const char *end)
{
	return end - at >= 2 && *at == '-' && ((end - at == 2 && isalpha((unsigned char)at[1])) || at[1] == '-');
}

/* Remembers the program that the options after this word may be of. */
static void find_program(struct redaction *r, const char *at, const char *end)
{
	const char *slash = memrchr(at, '/', (size_t)(end - at));

	at = slash ? slash + 1 : at;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const char *rest = at + strlen(options[i].program);

		if (rest > end || memcmp(at, options[i].program, strlen(options[i].program)) != 0)
			continue;
		while (rest < end && (isalpha((unsigned char)*rest) || *rest == '-'))
			rest++;
		if (rest == end)
			r->program = options[i].program;
	}
}

/* Puts the word if it is an option of the program's. Returns true if it is. */
static bool put_option(struct redaction *r, const char *at, const char *end)
{
	for (size_t i = 0; r->program && i < sizeof(options) / sizeof(*options); i++) {
		size_t len = strlen(options[i].option);
		bool begins = end - at >= (ptrdiff_t)len && !memcmp(at, options[i].option, len);

		if (!begins || strcmp(options[i].program, r->program) != 0)
			continue;
		if ((size_t)(end - at) > len && (options[i].is_joined || at[len] == '=')) {
			len += at[len] == '=';
			buf_add(r->out, at, len);
			put_secret(r, at + len, end);
			return true;
		}
		if ((size_t)(end - at) == len && options[i].is_next)
			r->next = NEXT_SECRET;
	}
	return false;
}

static bool is_scheme(const char *at, size_t len)
{
	char word[12] = "";

	if (!len || len >= sizeof(word))
		return false;
	for (size_t i = 0; i < len; i++)
		word[i] = (char)tolower((unsigned char)at[i]);
	return text_is_word(word, "bearer basic digest token negotiate");
}

/* Puts a word, and what belongs to its value of the text after it. Returns what is next. */
static const char *put_word(struct redaction *r, const char *at, const char *end)
{
	const char *word_end = end_of_word(at, end);
	size_t len = (size_t)(word_end - at);
	enum next next = r->next;

	if (next == NEXT_HEADER && is_scheme(at, len)) {
		buf_add(r->out, at, len);
		return word_end;
	}
	r->next = NEXT_ANY;
	if (next && !is_option(at, word_end))
		return put_secret(r, at, end_of_value(at, end, ' '));
	find_program(r, at, word_end);
	if (put_option(r, at, word_end))
		return word_end;
	if (wants_secret(at, word_end) || (len == 6 && !strncasecmp(at, "bearer", 6)))
		r->next = NEXT_SECRET;
	for (char before = ' '; at < word_end; before = at[-1])
		at = put_part(r, at, word_end, end, before);
	return at;
}

static void put_text(struct redaction *r, const char *at, const char *end)
{
	while (at < end) {
		if (isspace((unsigned char)*at))
			buf_add_char(r->out, *at++);
		else
			at = put_word(r, at, end);
	}
}

/* ---- arguments ---- */

/* Puts "-Dname=value", "NAME=value" or "Name: value" whose value may have blanks. Returns false if it is no secret. */
static bool put_whole(struct redaction *r, const char *at, const char *end)
{
	const char *name = begin_of_name(at, end), *sign = end_of_name(name, end), *value = sign + 1;

	if (end - sign < 2 || (*sign != '=' && (*sign != ':' || *value++ != ' ')) ||
	    !is_secret(name, (size_t)(sign - name), false))
		return false;
	buf_add(r->out, at, (size_t)(value - at));
	put_secret(r, value, end);
	return true;
}

static void put_argument(struct redaction *r, const char *at, const char *end)
{
	bool has_blanks = end_of_word(at, end) < end;
	struct redaction inner = {.out = r->out};

	if (r->next && has_blanks) {
		r->next = NEXT_ANY;
		put_secret(r, at, end);
	} else if (!r->next && put_whole(r, at, end)) {
		return;
	} else {
		put_text(has_blanks ? &inner : r, at, end);
	}
}

void redact_arguments(const char *arguments, size_t len, struct buf *out)
{
	const char *end = arguments + len;
	struct redaction r = {.out = out};

	for (const char *at = arguments; at < end;) {
		size_t argument_len = strnlen(at, (size_t)(end - at));

		if (at > arguments)
			buf_add_char(out, ' ');
		if (is_off)
			buf_add(out, at, argument_len);
		else
			put_argument(&r, at, at + argument_len);
		at += argument_len + 1;
	}
}

void redact_text(const char *text, size_t len, struct buf *out)
{
	struct redaction r = {.out = out};

	if (is_off)
		buf_add(out, text, len);
	else
		put_text(&r, text, text + len);
}

void redact_value(const char *name, size_t name_len, const char *value, struct buf *out)
{
	struct redaction r = {.out = out};
	size_t len = strlen(value);

	if (is_off || !is_secret(name, name_len, false))
		redact_text(value, len, out);
	else
		put_secret(&r, value, value + len);
}
