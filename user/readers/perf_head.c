/* SPDX-License-Identifier: MIT */
#include "readers/perf_head.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"

#define PERIOD_WIDTH 10 /* places of a period */
#define COMM_MAX 15 /* bytes of the kernel's names of threads */

bool perf_word_is(const struct perf_word *word, const char *text)
{
	return word->len == strlen(text) && !memcmp(word->text, text, word->len);
}

struct perf_word perf_word_next(const char *line, size_t len, size_t *at)
{
	struct perf_word word;

	while (*at < len && isspace((unsigned char)line[*at]))
		(*at)++;
	word.text = line + *at;
	while (*at < len && !isspace((unsigned char)line[*at]))
		(*at)++;
	word.len = (size_t)(line + *at - word.text);
	return word;
}

bool perf_word_number(const char *text, size_t len, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';

		if (digit > 9 || *ret > (INT64_MAX - digit) / 10)
			return false;
		*ret = *ret * 10 + digit;
	}
	return len > 0;
}

/* "12345.678901:" */
static bool read_time(const struct perf_word *word, uint64_t *ret_ns)
{
	const char *dot = memchr(word->text, '.', word->len);
	size_t before = dot ? (size_t)(dot - word->text) : 0;
	size_t digits = dot && word->text[word->len - 1] == ':' ? word->len - before - 2 : 0;
	uint64_t seconds, rest;

	if (digits < 1 || digits > 9 || !perf_word_number(word->text, before, &seconds) ||
	    !perf_word_number(dot + 1, digits, &rest) || seconds > INT64_MAX / NS_PER_SEC / 4)
		return false;
	for (; digits < 9; digits++)
		rest *= 10;
	*ret_ns = seconds * NS_PER_SEC + rest;
	return true;
}

/* "12/34" or "34" */
static bool read_ids(const struct perf_word *word, struct perf_head *ret)
{
	const char *slash = memchr(word->text, '/', word->len);
	size_t before = slash ? (size_t)(slash - word->text) : word->len;
	uint64_t pid, tid;

	if (!perf_word_number(word->text, before, &pid))
		return false;
	tid = pid;
	if (slash && !perf_word_number(slash + 1, word->len - before - 1, &tid))
		return false;
	ret->pid = (uint32_t)pid;
	ret->tid = (uint32_t)tid;
	return true;
}

bool perf_word_is_address(const struct perf_word *word)
{
	size_t digits = 0;

	while (digits < word->len && isxdigit((unsigned char)word->text[digits]))
		digits++;
	return digits == word->len && digits > 0 && digits <= 16;
}

/* The length without the branches at the end, "0x12/0x34/P/-/-/1 …". */
static size_t without_branches(const char *text, size_t len)
{
	size_t at = 0, end = 0;
	struct perf_word word;

	while ((word = perf_word_next(text, len, &at)).len) {
		if (word.len > 2 && !memcmp(word.text, "0x", 2) && memmem(word.text, word.len, "/0x", 3))
			return end;
		end = at;
	}
	return len;
}

/*
 * Reads "address symbol+offset (module)" behind the event. What follows a tracepoint is its text, which is skipped: it
 * begins after one blank, where addresses are padded to 16 places.
 */
static void read_only_frame(const char *line, size_t len, size_t at, struct perf_head *ret)
{
	size_t start = at;
	struct perf_word address = perf_word_next(line, len, &at);

	if (perf_word_is_address(&address) && address.text - (line + start) + address.len > PERF_ADDRESS_WIDTH &&
	    at < len)
		ret->frame = (struct perf_word){line + start, without_branches(line + start, len - start)};
}

/* Reads what follows the time: "period event:", and more after a tracepoint. */
static bool read_event(const char *line, size_t len, size_t at, struct perf_head *ret)
{
	struct perf_word word = perf_word_next(line, len, &at);

	ret->has_period = perf_word_number(word.text, word.len, &ret->period);
	if (ret->has_period)
		word = perf_word_next(line, len, &at);
	else
		ret->period = 1;
	if (word.len < 2 || word.text[word.len - 1] != ':')
		return false;
	ret->event = (struct perf_word){word.text, word.len - 1};
	read_only_frame(line, len, at, ret);
	return true;
}

static struct perf_word trimmed(const char *text, const char *end)
{
	while (text < end && isspace((unsigned char)*text))
		text++;
	while (text < end && isspace((unsigned char)end[-1]))
		end--;
	return (struct perf_word){text, (size_t)(end - text)};
}

/*
 * The words before the time are the name, which may have several words, the ids, and the CPU in brackets or the mode,
 * as U. With `needs_ids`, it is no head without them.
 */
static bool read_head_with(const char *line, size_t len, bool needs_ids, struct perf_head *ret)
{
	struct perf_word last[2] = {{line, 0}, {line, 0}}; /* the two words before the current one */
	size_t at = 0;

	*ret = (struct perf_head){0};
	for (;;) {
		struct perf_word word = perf_word_next(line, len, &at);
		const char *end = word.text;

		if (!word.len)
			return false;
		if (read_time(&word, &ret->time_ns)) {
			if (read_ids(&last[1], ret))
				end = last[1].text;
			else if (read_ids(&last[0], ret))
				end = last[0].text;
			ret->has_time = true;
			ret->comm = trimmed(line, end);
			if ((end < word.text || !needs_ids) && read_event(line, len, at, ret))
				return true;
		}
		last[0] = last[1];
		last[1] = word;
	}
}

bool perf_head_read(const char *line, size_t len, struct perf_head *ret)
{
	return read_head_with(line, len, true, ret) || read_head_with(line, len, false, ret);
}

static bool is_cpu(const struct perf_word *word)
{
	uint64_t cpu;

	return word->len > 2 && word->text[0] == '[' && word->text[word->len - 1] == ']' &&
	       perf_word_number(word->text + 1, word->len - 2, &cpu);
}

/* Reads a number before the event: the ids, or the period, which has more places. */
static bool read_bare_number(const struct perf_word *word, size_t places, struct perf_head *ret)
{
	uint64_t number;

	if (places < PERIOD_WIDTH || !perf_word_number(word->text, word->len, &number))
		return read_ids(word, ret);
	ret->period = number;
	ret->has_period = true;
	return true;
}

void perf_head_read_bare(const char *line, size_t len, struct perf_head *ret)
{
	const char *name_end = line, *before = line;
	size_t at = 0;
	struct perf_word word;

	*ret = (struct perf_head){.period = 1};
	while (!ret->event.len && !ret->frame.len && (word = perf_word_next(line, len, &at)).len) {
		read_only_frame(line, len, (size_t)(before - line), ret);
		if (ret->frame.len)
			break;
		if (read_time(&word, &ret->time_ns)) {
			ret->has_time = true;
		} else if (word.len > 1 && word.text[word.len - 1] == ':') {
			ret->event = (struct perf_word){word.text, word.len - 1};
			read_only_frame(line, len, at, ret);
		} else if (!is_cpu(&word) && !read_bare_number(&word, (size_t)(line + at - before), ret)) {
			name_end = line + at;
		}
		before = line + at;
	}
	ret->comm = trimmed(line, name_end);
	if (ret->comm.len > COMM_MAX)
		ret->comm.len = 0;
}

bool perf_head_is_tracepoint(const struct perf_word *event)
{
	size_t colons = 0;

	for (size_t i = 0; i < event->len; i++) {
		char c = event->text[i];

		colons += c == ':';
		if (!isalnum((unsigned char)c) && c != '_' && c != '-' && c != ':')
			return false;
	}
	return colons == 1;
}
