/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, one a line, root first: "a;b;c 12". duet, async-profiler and stackcollapse-perf.pl write them. The
 * format has no event and no times: all samples are of the event "samples", at time 0. A line that begins with '#' and
 * has no count is a comment.
 *
 * gProfiler's .col files begin with a comment of JSON. Each line has two more fields before its stack: a number, and
 * the container, which may be empty. The number is left out.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "in/frame_text.h"
#include "in/lines.h"
#include "in/readers.h"

#define DEPTH_MAX 65536
#define SAMPLES_MAX (1ull << 53) /* the flame graph's page counts in doubles */

struct collapsed {
	struct profile *profile;
	struct lines lines;
	struct frame_texts frames;
	struct vec(uint32_t) stack;
	uint64_t samples;
	uint32_t thread;
	uint32_t event;
	bool is_col;
};

/* The length of the stack, which a space and the count follow; 0 if the line is not "stack count". */
static size_t stack_len(const char *line, size_t len)
{
	size_t digits = 0;

	while (digits < len && isdigit((unsigned char)line[len - 1 - digits]))
		digits++;
	if (!digits || digits + 1 >= len || line[len - digits - 1] != ' ')
		return 0;
	return len - digits - 1;
}

/* ---- stacks -------------------------------------------------------------------- */

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
		uint32_t frame;

		frame = frame_texts_find(&c->frames, text, (size_t)(stop - text));
		err = frame == UINT32_MAX ? -ENOMEM : vec_push(&c->stack, frame);
		text = stop + 1;
		if (c->stack.len <= DEPTH_MAX)
			continue;
		buf_printf(why, "line %llu has more than %d frames", (unsigned long long)c->lines.number, DEPTH_MAX);
		return -EINVAL;
	}
	return err;
}

static int add_samples(struct collapsed *c, uint64_t count)
{
	uint32_t node = profile_stack(c->profile, c->stack.items, (uint32_t)c->stack.len);
	int err = 0;

	while (count && !err) {
		uint32_t part = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;

		err = profile_add(c->profile, &(struct profile_sample){
						      .weight = part,
						      .thread = c->thread,
						      .node = node,
						      .count = part,
						      .event = c->event,
					      });
		count -= part;
	}
	return err;
}

/* Reads digits up to the end of the line. Returns SAMPLES_MAX + 1 if the number is larger. */
static uint64_t read_count(const char *digits, const char *end)
{
	uint64_t count = 0;

	for (; digits < end && count <= SAMPLES_MAX; digits++)
		count = count * 10 + (uint64_t)(*digits - '0');
	return count <= SAMPLES_MAX ? count : SAMPLES_MAX + 1;
}

/* "#{" or "# {" */
static bool is_header(const char *line, size_t len)
{
	size_t brace = len > 1 && line[1] == ' ' ? 2 : 1;

	return len > brace && line[0] == '#' && line[brace] == '{';
}

static int read_line(struct collapsed *c, const char *line, size_t len, struct buf *why)
{
	size_t stack = stack_len(line, len);
	uint64_t count;
	int err;

	c->is_col |= c->lines.number == 1 && is_header(line, len) && !stack;
	if (!len || (!stack && line[0] == '#'))
		return 0;
	if (!stack || memchr(line, '\0', len)) {
		buf_printf(why, "line %llu is not a stack and a count, as \"a;b;c 12\"",
			   (unsigned long long)c->lines.number);
		return -EINVAL;
	}
	count = read_count(line + stack + 1, line + len);
	if (count > SAMPLES_MAX - c->samples) {
		buf_printf(why, "line %llu: more than %llu samples in all", (unsigned long long)c->lines.number,
			   SAMPLES_MAX);
		return -EOVERFLOW;
	}
	c->samples += count;
	err = push_stack(c, line, stack, why);
	return err ? err : add_samples(c, count);
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

static int collapsed_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct collapsed c = {
		.profile = profile,
		.thread = profile_thread(profile, 0, 0, "", "", 0),
		.event = profile_event(profile, READER_SAMPLES, PROFILE_COUNT, 1),
	};
	int err = frame_texts_init(&c.frames, profile, frame_from_text);

	lines_init(&c.lines, source);
	if (!err)
		err = read_lines(&c, why);
	if (err < 0 && !why->len)
		buf_add_str(why, strerror(-err));
	lines_release(&c.lines);
	frame_texts_release(&c.frames);
	vec_release(&c.stack);
	return err;
}

/*
 * Decided by the first line that is neither empty nor a comment. A line that is longer than `start` only has to be
 * text.
 */
static bool collapsed_claims(const unsigned char *start, size_t len)
{
	const char *line = (const char *)start, *end = line + len;

	if (memchr(start, '\0', len))
		return false;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t bytes = lines_without_return(line, (size_t)((newline ? newline : end) - line));

		if (!newline && len == READER_START)
			return memchr(line, ';', bytes) != NULL;
		if (bytes && (*line != '#' || stack_len(line, bytes)))
			return stack_len(line, bytes) > 0;
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
