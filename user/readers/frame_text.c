/* SPDX-License-Identifier: MIT */
#include "readers/frame_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "duet_jvm.h"

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

enum frame_kind frame_kind_of_brackets(const char *text, size_t len)
{
	if (has_text(text, len, " tid=") || has_text(text, len, "[tid=") || has_text(text, len, " virtual"))
		return FRAME_THREAD;
	return has_text(text, len, " pid=") ? FRAME_PROCESS : FRAME_MARK;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '-' || (unsigned char)c >= 0x80;
}

/* The parts of a text such as "java/lang/String.charAt(I)C:12". */
struct java_text {
	size_t class_len;
	size_t name; /* offset of the name */
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

static uint32_t intern_with(struct profile *profile, const char *text, size_t len, char from, char to)
{
	uint32_t id = 0;
	BUF(copy);

	buf_add(&copy, text, len);
	for (size_t i = 0; i < copy.len; i++)
		if (copy.data[i] == from && !isdigit((unsigned char)copy.data[i + 1]))
			copy.data[i] = to;
	if (!copy.failed)
		id = intern_bytes(&profile->strings, copy.data, copy.len);
	return id;
}

static void set_java(struct profile *profile, struct frame *frame, const char *text, const struct java_text *java)
{
	frame->class_name = intern_with(profile, text, java->class_len, '/', '.');
	frame->name = intern_bytes(&profile->strings, text + java->name, java->name_len);
	if (java->signature_len)
		frame->signature =
			intern_with(profile, text + java->name + java->name_len, java->signature_len, '|', ';');
	frame->line = java->line;
}

/* "libc.so.6`read" */
static void set_native(struct profile *profile, struct frame *frame, const char *text, size_t len)
{
	const char *tick = memchr(text, '`', len);
	size_t module = tick && tick != text ? (size_t)(tick - text) : 0;
	size_t name = module ? module + 1 : 0;

	if (module)
		frame->module = intern_bytes(&profile->strings, text, module);
	if (frame->kind == FRAME_NATIVE && duet_is_libjvm(intern_text(&profile->strings, frame->module)))
		frame->kind = FRAME_JVM;
	frame->name = intern_bytes(&profile->strings, text + name, len - name);
}

/*
 * Classes of objects have the suffix of inlined code, as async-profiler writes them. They are arrays, or their last
 * part begins with a capital letter, as that of a method does not.
 */
static bool is_object(const char *text, size_t len)
{
	size_t last = len;

	if (len > 2 && !memcmp(text + len - 2, "[]", 2))
		return true;
	while (last && (text[last - 1] != '.' || isdigit((unsigned char)text[last])))
		last--;
	return len && isupper((unsigned char)text[last]) && !memchr(text, '/', len) && !memchr(text, '(', len);
}

struct frame frame_from_text(struct profile *profile, const char *text, size_t len)
{
	struct frame frame = {.kind = take_suffix(text, &len), .bci = -1};
	struct java_text java;
	bool reads_java;

	if (frame.kind == FRAME_INLINED && is_object(text, len))
		frame.kind = FRAME_CLASS;
	if (frame.kind == FRAME_NATIVE && len > 1 && text[0] == '[' && text[len - 1] == ']')
		frame.kind = frame_kind_of_brackets(text, len);
	reads_java = frame.kind != FRAME_KERNEL && frame.kind != FRAME_MARK && frame.kind != FRAME_CLASS &&
		     read_java(&java, text, len);
	if (frame.kind == FRAME_NATIVE && reads_java && java.slashes)
		frame.kind = FRAME_COMPILED;
	if (frame_kind_is_java(frame.kind) && reads_java)
		set_java(profile, &frame, text, &java);
	else if (frame.kind <= FRAME_JVM)
		set_native(profile, &frame, text, len);
	else
		frame.name = intern_bytes(&profile->strings, text, len);
	return frame;
}

int frame_texts_init(struct frame_texts *texts, struct profile *profile,
		     struct frame (*from_text)(struct profile *profile, const char *text, size_t len))
{
	*texts = (struct frame_texts){.profile = profile, .from_text = from_text};
	return intern_init(&texts->tokens);
}

void frame_texts_release(struct frame_texts *texts)
{
	intern_release(&texts->tokens);
	vec_release(&texts->frames);
}

static uint32_t add_text(struct frame_texts *texts, const char *text, size_t len)
{
	struct frame frame = texts->from_text(texts->profile, text, len);
	uint32_t index = profile_frame(texts->profile, &frame);

	return index == UINT32_MAX || vec_push(&texts->frames, index) < 0 ? UINT32_MAX : index;
}

uint32_t frame_texts_find(struct frame_texts *texts, const char *text, size_t len)
{
	uint32_t token = intern_bytes(&texts->tokens, text, len);

	if (len && !token)
		return UINT32_MAX;
	if (token < texts->frames.len)
		return texts->frames.items[token];
	while (texts->frames.len < token) /* only the empty text comes here, before any frame had it */
		if (add_text(texts, "", 0) == UINT32_MAX)
			return UINT32_MAX;
	return add_text(texts, text, len);
}

#define CHUNK_BYTES 16384
#define LINE_BYTES_MAX (8u << 20)

void lines_init(struct lines *lines, struct reader_source *source)
{
	*lines = (struct lines){.source = source};
	buf_init(&lines->text);
}

void lines_release(struct lines *lines)
{
	buf_release(&lines->text);
}

size_t lines_without_return(const char *line, size_t len)
{
	return len && line[len - 1] == '\r' ? len - 1 : len;
}

/* Drops the lines that were returned, and reads on. */
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

/* Like lines_next(), but leaves the sentence to that function. */
static int next_line(struct lines *lines, const char **ret_line, size_t *ret_len)
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

int lines_next(struct lines *lines, const char **ret_line, size_t *ret_len, struct buf *why)
{
	int got = next_line(lines, ret_line, ret_len);

	lines->number++;
	if (got > 0)
		*ret_len = lines_without_return(*ret_line, *ret_len);
	if (got == -EFBIG)
		buf_printf(why, "line %llu is longer than %u MB", (unsigned long long)lines->number,
			   LINE_BYTES_MAX >> 20);
	return got;
}
