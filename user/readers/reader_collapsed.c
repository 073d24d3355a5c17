/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, one a line, root first: "a;b;c 12". duet, async-profiler and stackcollapse-perf.pl write them. The
 * format has no event and no times: all samples are of the event "samples", at time 0. A line that begins with '#' and
 * has no count is a comment.
 *
 * Counts may have decimals and powers of ten, "0.5" or "1.5e-3", as those that are times have. Weights are whole
 * numbers, so the event is then "samples of 0.001", or smaller by thousands until the file's decimals have room. What
 * even these do not hold is handed on to the next stack, so that the sum stays.
 *
 * gProfiler's .col files begin with a comment of JSON. Each line has two more fields before its stack: a number, and
 * the container, which may be empty. The number is left out.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "readers/frame_text.h"
#include "readers/reader.h"

#define DEPTH_MAX 65536
#define NUMBER_MAX 63 /* bytes of a count */
#define PLACES_MAX 18 /* decimals that are kept; a multiple of 3 */

struct collapsed {
	struct profile *profile;
	struct lines lines;
	struct frame_texts frames;
	struct vec(uint32_t) stack;
	struct vec(double) counts; /* by node */
	double samples;
	int decimals; /* most of a count, PLACES_MAX at most */
	bool is_col;
};

struct count {
	double value;
	int decimals;
};

static bool is_of_number(char letter)
{
	return isdigit((unsigned char)letter) || (letter && strchr(".eE+-", letter));
}

static bool read_count(const char *text, size_t len, struct count *ret)
{
	char number[NUMBER_MAX + 1] = "", *end = number;
	size_t whole, fraction;
	long exponent;

	memcpy(number, text, len);
	if (isdigit((unsigned char)number[0]) || number[0] == '.')
		ret->value = strtod(number, &end);
	if (end == number || *end)
		return false;
	whole = strspn(number, "0123456789");
	fraction = number[whole] == '.' ? strspn(number + whole + 1, "0123456789") : 0;
	end = strpbrk(number, "eE");
	exponent = end ? strtol(end + 1, NULL, 10) : 0;
	if (exponent < -PLACES_MAX)
		exponent = -PLACES_MAX;
	ret->decimals = exponent < (long)fraction ? (int)((long)fraction - exponent) : 0;
	return true;
}

/* The length of the stack, which a space and the count follow; 0 if the line is not "stack count". */
static size_t stack_len(const char *line, size_t len, struct count *ret)
{
	size_t digits = 0;

	while (digits < len && digits < NUMBER_MAX && is_of_number(line[len - 1 - digits]))
		digits++;
	if (!digits || digits + 1 >= len || line[len - digits - 1] != ' ')
		return 0;
	return read_count(line + len - digits, digits, ret) ? len - digits - 1 : 0;
}

/* Returns the length of the fields before a stack of a .col file, after pushing the container's frame. -ENOMEM. */
static ssize_t push_container(struct collapsed *c, const char *text, size_t len)
{
	struct frame frame = {.kind = FRAME_CONTAINER, .bci = -1};
	size_t digits = 0, name = 0;
	uint32_t index;

	while (digits < len && isdigit((unsigned char)text[digits]))
		digits++;
	if (!digits || digits == len || text[digits] != ';')
		return 0;
	while (digits + 1 + name < len && text[digits + 1 + name] != ';')
		name++;
	if (digits + 1 + name == len)
		return 0;
	if (name) {
		frame.name = intern_bytes(&c->profile->strings, text + digits + 1, name);
		index = profile_frame(c->profile, &frame);
		if (index == UINT32_MAX || vec_push(&c->stack, index) < 0)
			return -ENOMEM;
	}
	return (ssize_t)(digits + name + 2);
}

static int push_stack(struct collapsed *c, const char *text, size_t len, struct buf *why)
{
	ssize_t skipped;
	int err = 0;

	vec_clear(&c->stack);
	skipped = c->is_col ? push_container(c, text, len) : 0;
	if (skipped < 0)
		return (int)skipped;
	text += skipped;
	len -= (size_t)skipped;
	for (const char *end = text + len; !err && text <= end;) {
		const char *semicolon = memchr(text, ';', (size_t)(end - text));
		const char *stop = semicolon ? semicolon : end;
		uint32_t frame = frame_texts_find(&c->frames, text, (size_t)(stop - text));

		err = frame == UINT32_MAX ? -ENOMEM : vec_push(&c->stack, frame);
		text = stop + 1;
		if (c->stack.len <= DEPTH_MAX)
			continue;
		return buf_explain(why, -EINVAL, "line %llu has more than %d frames",
				  (unsigned long long)c->lines.number, DEPTH_MAX);
	}
	return err;
}

static int add_count(struct collapsed *c, double value)
{
	uint32_t node = profile_stack(c->profile, c->stack.items, (uint32_t)c->stack.len);

	if (node == UINT32_MAX)
		return -ENOMEM;
	while (c->counts.len <= node)
		if (vec_push(&c->counts, 0) < 0)
			return -ENOMEM;
	c->counts.items[node] += value;
	return 0;
}

/* "#{" or "# {" */
static bool is_header(const char *line, size_t len)
{
	size_t brace = len > 1 && line[1] == ' ' ? 2 : 1;

	return len > brace && line[0] == '#' && line[brace] == '{';
}

static int read_line(struct collapsed *c, const char *line, size_t len, struct buf *why)
{
	struct count count;
	size_t stack = stack_len(line, len, &count);
	int err;

	c->is_col |= c->lines.number == 1 && is_header(line, len) && !stack;
	if (!len || (!stack && line[0] == '#'))
		return 0;
	if (!stack || memchr(line, '\0', len))
		return buf_explain(why, -EINVAL, "line %llu is not a stack and a count, as \"a;b;c 12\"",
				   (unsigned long long)c->lines.number);
	if (count.value > (double)PROFILE_COUNT_MAX - c->samples)
		return buf_explain(why, -EOVERFLOW, "line %llu: more than %llu samples in all",
				   (unsigned long long)c->lines.number, PROFILE_COUNT_MAX);
	c->samples += count.value;
	if (count.decimals > c->decimals)
		c->decimals = count.decimals;
	err = push_stack(c, line, stack, why);
	return err ? err : add_count(c, count.value);
}

static int read_lines(struct collapsed *c, struct buf *why)
{
	const char *line;
	size_t len;
	int err;

	while ((err = lines_next(&c->lines, &line, &len, why)) > 0) {
		err = read_line(c, line, len, why);
		if (err < 0)
			break;
	}
	return err;
}

/* Decimals that weights have, so that there is room for their sum: those of the counts, rounded up to thousands. */
static int places_of(const struct collapsed *c, double *ret_scale)
{
	int places = c->decimals < PLACES_MAX ? (c->decimals + 2) / 3 * 3 : PLACES_MAX;
	double scale = 1;

	for (int i = 0; i < places; i++)
		scale *= 10;
	for (; places && c->samples * scale > (double)PROFILE_COUNT_MAX; places -= 3)
		scale /= 1000;
	*ret_scale = scale;
	return places;
}

static uint32_t add_event(struct profile *profile, int places)
{
	char name[64] = READER_SAMPLES;

	if (places)
		snprintf(name, sizeof(name), READER_SAMPLES " of 0.%0*d", places, 1);
	return profile_event(profile, name, PROFILE_COUNT, 1);
}

static int add_counts(struct collapsed *c)
{
	double scale;
	int places = places_of(c, &scale), err = 0;
	long double rest = 0;
	struct profile_sample sample = {
		.thread = profile_thread(c->profile, 0, 0, "", "", 0),
		.event = add_event(c->profile, places),
	};

	for (uint32_t node = 0; node < c->counts.len && !err; node++) {
		long double exact = (long double)c->counts.items[node] * scale + rest;
		uint64_t whole = (uint64_t)(exact + 0.5L);

		rest = exact - whole;
		sample.node = node;
		sample.weight = whole;
		err = reader_add(c->profile, sample, whole);
	}
	return err;
}

static int collapsed_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct collapsed c = {.profile = profile};
	int err = frame_texts_init(&c.frames, profile, frame_from_text);

	lines_init(&c.lines, source);
	if (!err)
		err = read_lines(&c, why);
	if (!err)
		err = add_counts(&c);
	lines_release(&c.lines);
	frame_texts_release(&c.frames);
	vec_release(&c.stack);
	vec_release(&c.counts);
	return err;
}

/*
 * Decided by the first line that is neither empty nor a comment. A line that is longer than `start` only has to be
 * text.
 */
static bool collapsed_claims(const unsigned char *start, size_t len)
{
	const char *line = (const char *)start, *end = line + len;
	struct count count;

	if (memchr(start, '\0', len))
		return false;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t bytes = lines_without_return(line, (size_t)((newline ? newline : end) - line));

		if (!newline && len == READER_START)
			return memchr(line, ';', bytes) != NULL;
		if (bytes && (*line != '#' || stack_len(line, bytes, &count)))
			return stack_len(line, bytes, &count) > 0;
		line = newline ? newline + 1 : end;
	}
	return false;
}

const struct reader reader_collapsed = {
	.name = "collapsed",
	.help = "one line a stack, root first: a;b;c 12",
	.claims = collapsed_claims,
	.read = collapsed_read,
};
