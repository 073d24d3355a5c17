/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks, one a line, root first: "a;b;c 12". duet, async-profiler and stackcollapse-perf.pl write them. The
 * format has no event and no times: all samples are of the event "samples", at time 0. A line that begins with '#' and
 * has no count is a comment.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "in/readers.h"

#define CHUNK_BYTES 65536
#define LINE_BYTES_MAX (8u << 20)
#define DEPTH_MAX 65536
#define SAMPLES_MAX (1ull << 53) /* the flame graph's page counts in doubles */

struct lines {
	struct reader_source *source;
	struct buf text;
	size_t at;	/* where the next line begins */
	size_t scanned; /* there is no newline between `at` and here */
	bool ended;
};

struct collapsed {
	struct profile *profile;
	struct intern tokens; /* the texts of frames, as the file has them … */
	struct vec(uint32_t) token_frames; /* … and the index of the frame, by id of the token */
	struct vec(uint32_t) stack;
	uint64_t line; /* the number of the line being read, from 1 */
	uint64_t samples;
	uint32_t thread;
	uint32_t event;
};

/* ---- lines ------------------------------------------------------------------ */

/* Drops the lines that were given and reads on. */
static int lines_fill(struct lines *lines)
{
	char chunk[CHUNK_BYTES];
	size_t rest = lines->text.len - lines->at;
	ssize_t got;

	if (rest > LINE_BYTES_MAX)
		return -EFBIG;
	memmove(lines->text.data, lines->text.data + lines->at, rest);
	buf_cut(&lines->text, rest);
	lines->at = 0;
	lines->scanned = rest;
	got = reader_bytes(lines->source, chunk, sizeof(chunk));
	if (got < 0)
		return (int)got;
	lines->ended = (size_t)got < sizeof(chunk);
	buf_add(&lines->text, chunk, (size_t)got);
	return lines->text.failed ? -ENOMEM : 0;
}

/* The next line without its newline; valid until the next call. Returns 1, 0 at the end of the file, or -errno. */
static int lines_next(struct lines *lines, const char **ret_line, size_t *ret_len)
{
	const char *newline;

	while (!(newline = memchr(lines->text.data + lines->scanned, '\n', lines->text.len - lines->scanned)) &&
	       !lines->ended) {
		int err = lines_fill(lines);

		if (err < 0)
			return err;
	}
	*ret_line = lines->text.data + lines->at;
	*ret_len = newline ? (size_t)(newline - *ret_line) : lines->text.len - lines->at;
	if (!newline && !*ret_len)
		return 0;
	lines->at += *ret_len + (newline != NULL);
	lines->scanned = lines->at;
	return *ret_len > LINE_BYTES_MAX ? -EFBIG : 1;
}

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

static size_t without_return(const char *line, size_t len)
{
	return len && line[len - 1] == '\r' ? len - 1 : len;
}

/* ---- frames ------------------------------------------------------------------- */

/* Cuts off the suffix that says how the code ran. FRAME_NATIVE if there is none. */
static enum frame_kind take_suffix(const char *text, size_t *len)
{
	static const struct {
		const char *text;
		enum frame_kind kind;
	} suffixes[] = {
		{"_[k]", FRAME_KERNEL},	     {"_[j]", FRAME_COMPILED}, {"_[i]", FRAME_INLINED},
		{"_[0]", FRAME_INTERPRETED}, {"_[1]", FRAME_COMPILED}, /* by C1 */
	};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t bytes = strlen(suffixes[i].text);

		if (*len > bytes && !memcmp(text + *len - bytes, suffixes[i].text, bytes)) {
			*len -= bytes;
			return suffixes[i].kind;
		}
	}
	return FRAME_NATIVE;
}

static bool has_text(const char *text, size_t len, const char *what)
{
	return memmem(text, len, what, strlen(what)) != NULL;
}

/* "[main tid=1]", "[java pid=1]", "[unknown_Java]" */
static enum frame_kind kind_of_brackets(const char *text, size_t len)
{
	if (has_text(text, len, " tid=") || has_text(text, len, "[tid=") || has_text(text, len, " virtual"))
		return FRAME_THREAD;
	return has_text(text, len, " pid=") ? FRAME_PROCESS : FRAME_MARK;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '-' || (unsigned char)c >= 0x80;
}

/* The parts of "java/lang/String.charAt(I)C:12". */
struct java_text {
	size_t class_len;
	size_t name; /* where it begins */
	size_t name_len;
	size_t signature_len; /* follows the name */
	int32_t line;
	bool slashes; /* the class has a package, separated by '/' and nothing else */
};

/* The length of the text before ":12" at its end. */
static size_t before_line(const char *text, size_t len, int32_t *ret_line)
{
	size_t digits = 0;

	while (digits < len && digits < 9 && isdigit((unsigned char)text[len - 1 - digits]))
		digits++;
	if (!digits || digits + 1 >= len || text[len - digits - 1] != ':')
		return len;
	*ret_line = (int32_t)strtol(text + len - digits, NULL, 10);
	return len - digits - 1;
}

/* As frame.c reads class names: a separator before a digit belongs to the name of a hidden class. */
static bool is_class(struct java_text *java, const char *text)
{
	size_t dots = 0, slashes = 0;

	for (size_t i = 0; i < java->class_len; i++) {
		bool is_separator = text[i] == '/' || text[i] == '.';

		if (!is_separator && !is_name_char(text[i]) && text[i] != '+')
			return false;
		if (!is_separator || isdigit((unsigned char)text[i + 1]))
			continue;
		dots += text[i] == '.';
		slashes += text[i] == '/';
	}
	java->slashes = slashes && !dots;
	return !slashes || !dots;
}

/* False if the text is not of this form. */
static bool read_java(struct java_text *java, const char *text, size_t len)
{
	const char *paren, *dot;
	size_t end;

	*java = (struct java_text){0};
	len = before_line(text, len, &java->line);
	paren = memchr(text, '(', len);
	end = paren ? (size_t)(paren - text) : len;
	dot = memrchr(text, '.', end);
	if (!dot || dot == text || dot + 1 == text + end || isdigit((unsigned char)dot[1]))
		return false;
	java->class_len = (size_t)(dot - text);
	java->name = java->class_len + 1;
	java->name_len = end - java->name;
	java->signature_len = len - end;
	return is_class(java, text);
}

static uint32_t intern_with(struct collapsed *c, const char *text, size_t len, char from, char to)
{
	uint32_t id = 0;
	struct buf copy;

	buf_init(&copy);
	buf_add(&copy, text, len);
	for (size_t i = 0; i < copy.len; i++)
		if (copy.data[i] == from && !isdigit((unsigned char)copy.data[i + 1]))
			copy.data[i] = to;
	if (!copy.failed)
		id = intern_bytes(&c->profile->strings, copy.data, copy.len);
	buf_release(&copy);
	return id;
}

static void set_java(struct collapsed *c, struct frame *frame, const char *text, const struct java_text *java)
{
	frame->class_name = intern_with(c, text, java->class_len, '/', '.');
	frame->name = intern_bytes(&c->profile->strings, text + java->name, java->name_len);
	if (java->signature_len)
		frame->signature = intern_with(c, text + java->name + java->name_len, java->signature_len, '|', ';');
	frame->line = java->line;
}

/* "libc.so.6`read" */
static void set_native(struct collapsed *c, struct frame *frame, const char *text, size_t len)
{
	const char *tick = memchr(text, '`', len);
	size_t module = tick && tick != text ? (size_t)(tick - text) : 0;
	size_t name = module ? module + 1 : 0;

	if (module)
		frame->module = intern_bytes(&c->profile->strings, text, module);
	if (frame->kind == FRAME_NATIVE && module >= 6 && !memcmp(text, "libjvm", 6))
		frame->kind = FRAME_JVM;
	frame->name = intern_bytes(&c->profile->strings, text + name, len - name);
}

/* A frame without a suffix is Java where it cannot be read otherwise: java/lang/String.length. */
static uint32_t frame_of_text(struct collapsed *c, const char *text, size_t len)
{
	struct frame frame = {.kind = take_suffix(text, &len), .bci = -1};
	struct java_text java;
	bool reads_java;

	if (frame.kind == FRAME_NATIVE && len > 1 && text[0] == '[' && text[len - 1] == ']')
		frame.kind = kind_of_brackets(text, len);
	reads_java = frame.kind != FRAME_KERNEL && frame.kind != FRAME_MARK && read_java(&java, text, len);
	if (frame.kind == FRAME_NATIVE && reads_java && java.slashes)
		frame.kind = FRAME_COMPILED;
	if (frame_kind_is_java(frame.kind) && reads_java)
		set_java(c, &frame, text, &java);
	else if (frame.kind <= FRAME_JVM)
		set_native(c, &frame, text, len);
	else
		frame.name = intern_bytes(&c->profile->strings, text, len);
	return profile_frame(c->profile, &frame);
}

/* The same, but each text is taken apart once. */
static int push_frame(struct collapsed *c, const char *text, size_t len)
{
	uint32_t token = intern_bytes(&c->tokens, text, len), frame;

	if (len && !token)
		return -ENOMEM;
	if (token < c->token_frames.len)
		return vec_push(&c->stack, c->token_frames.items[token]);
	while (c->token_frames.len < token) /* only the empty text, if no frame had it yet */
		if (vec_push(&c->token_frames, frame_of_text(c, "", 0)) < 0)
			return -ENOMEM;
	frame = frame_of_text(c, text, len);
	return vec_push(&c->token_frames, frame) < 0 ? -ENOMEM : vec_push(&c->stack, frame);
}

/* ---- stacks -------------------------------------------------------------------- */

static int push_stack(struct collapsed *c, const char *text, size_t len, struct buf *why)
{
	int err = 0;

	vec_clear(&c->stack);
	for (const char *end = text + len; !err && text <= end;) {
		const char *semicolon = memchr(text, ';', (size_t)(end - text));
		const char *stop = semicolon ? semicolon : end;

		err = push_frame(c, text, (size_t)(stop - text));
		text = stop + 1;
		if (c->stack.len <= DEPTH_MAX)
			continue;
		buf_printf(why, "line %llu has more than %d frames", (unsigned long long)c->line, DEPTH_MAX);
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

/* Digits to the end of the line. SAMPLES_MAX + 1 if they are more than that. */
static uint64_t read_count(const char *digits, const char *end)
{
	uint64_t count = 0;

	for (; digits < end && count <= SAMPLES_MAX; digits++)
		count = count * 10 + (uint64_t)(*digits - '0');
	return count <= SAMPLES_MAX ? count : SAMPLES_MAX + 1;
}

static int read_line(struct collapsed *c, const char *line, size_t len, struct buf *why)
{
	size_t stack = stack_len(line, len);
	uint64_t count;
	int err;

	if (!len || (!stack && line[0] == '#'))
		return 0;
	if (!stack || memchr(line, '\0', len)) {
		buf_printf(why, "line %llu is not a stack and a count, as \"a;b;c 12\"", (unsigned long long)c->line);
		return -EINVAL;
	}
	count = read_count(line + stack + 1, line + len);
	if (count > SAMPLES_MAX - c->samples) {
		buf_printf(why, "line %llu: more than %llu samples in all", (unsigned long long)c->line, SAMPLES_MAX);
		return -EOVERFLOW;
	}
	c->samples += count;
	err = push_stack(c, line, stack, why);
	return err ? err : add_samples(c, count);
}

static int read_lines(struct collapsed *c, struct lines *lines, struct buf *why)
{
	const char *line;
	size_t len;
	int err;

	for (c->line = 1; (err = lines_next(lines, &line, &len)) > 0; c->line++) {
		err = read_line(c, line, without_return(line, len), why);
		if (err < 0)
			break;
	}
	if (err == -EFBIG)
		buf_printf(why, "line %llu is longer than %u MB", (unsigned long long)c->line, LINE_BYTES_MAX >> 20);
	else if (err < 0 && !why->len)
		buf_add_str(why, strerror(-err));
	return err;
}

static int collapsed_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct lines lines = {.source = source};
	struct collapsed c = {
		.profile = profile,
		.thread = profile_thread(profile, 0, 0, "", "", 0),
		.event = profile_event(profile, READER_SAMPLES, PROFILE_COUNT, 1),
	};
	int err = intern_init(&c.tokens);

	if (err < 0) {
		buf_add_str(why, strerror(-err));
		return err;
	}
	buf_init(&lines.text);
	err = read_lines(&c, &lines, why);
	buf_release(&lines.text);
	vec_release(&c.token_frames);
	vec_release(&c.stack);
	intern_release(&c.tokens);
	return err;
}

/* Decided by the first line that is not empty and no comment. One that is longer than `start` only has to be text. */
static bool collapsed_claims(const unsigned char *start, size_t len)
{
	const char *line = (const char *)start, *end = line + len;

	if (memchr(start, '\0', len))
		return false;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t bytes = without_return(line, (size_t)((newline ? newline : end) - line));

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
