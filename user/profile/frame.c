/* SPDX-License-Identifier: MIT */
#include "profile/profile.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

bool frame_name_compiles(const char *name)
{
	static const char *const names[] = {"Compiler::compile_method", "C2Compiler::compile_method"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

bool frame_kind_is_java(enum frame_kind kind)
{
	return kind == FRAME_COMPILED || kind == FRAME_INLINED || kind == FRAME_INTERPRETED ||
	       kind == FRAME_JAVA_NATIVE;
}

#define NAME(kind, name) name,

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[] = {FRAME_KINDS(NAME)};

	return kind < FRAME_KIND_MAX ? names[kind] : "unknown";
}

/*
 * A separator before a digit does not end a package: it belongs to the name of a hidden class (Main$$Lambda/0x00007f..,
 * JDK 15).
 */
static bool is_package_end(const char *s)
{
	return (*s == '.' || *s == '/') && !isdigit((unsigned char)s[1]);
}

static const char *simple_class(const char *class_name)
{
	const char *simple = class_name;

	for (const char *s = class_name; *s; s++)
		if (is_package_end(s))
			simple = s + 1;
	return simple;
}

#define LAMBDA "$$Lambda"

/*
 * Returns the length of a class's name without the numbers of a hidden class: Main$$Lambda, of
 * Main$$Lambda$14/0x00007f...
 */
static size_t steady_len(const char *name, size_t len)
{
	const size_t lambda = strlen(LAMBDA);
	size_t end = len;

	while (end && name[end - 1] != '/' && name[end - 1] != '.')
		end--;
	if (end > 1 && isdigit((unsigned char)name[end]))
		len = end - 1;
	end = len;
	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	if (end > lambda && end < len && name[end - 1] == '$' && !memcmp(name + end - 1 - lambda, LAMBDA, lambda))
		len = end - 1;
	return len;
}

static void add_class(const char *class_name, const struct frame_style *style, struct buf *out)
{
	size_t start = out->len;

	text_add_token(out, style->simple ? simple_class(class_name) : class_name);
	if (style->steady)
		buf_cut(out, start + steady_len(out->data + start, out->len - start));
	for (size_t i = start; i < out->len; i++)
		if (is_package_end(&out->data[i]))
			out->data[i] = style->dotted ? '.' : '/';
}

static void add_java(const struct intern *strings, const struct frame *frame, const struct frame_style *style,
		     struct buf *out)
{
	if (frame->class_name) {
		add_class(intern_text(strings, frame->class_name), style, out);
		buf_add_char(out, '.');
	}
	text_add_token(out, intern_text(strings, frame->name));
	if (style->signatures)
		text_add_token(out, intern_text(strings, frame->signature));
	if (style->lines && frame->line > 0)
		buf_printf(out, ":%d", frame->line);
	else if (style->bci && frame->bci > 0)
		buf_printf(out, "@%d", frame->bci);
}

/* An address without a symbol has the name module+0xoffset, which needs no module before it. */
static bool names_its_module(const char *name, const char *module)
{
	size_t len = strlen(module);

	return strncmp(name, module, len) == 0 && name[len] == '+';
}

static void add_native(const struct intern *strings, const struct frame *frame, const struct frame_style *style,
		       struct buf *out)
{
	const char *name = intern_text(strings, frame->name);
	const char *module = intern_text(strings, frame->module);

	if (style->libraries && *module && !names_its_module(name, module)) {
		text_add_token(out, module);
		buf_add_char(out, '`');
	}
	text_add_token(out, *name ? name : "[unknown]");
}

void frame_cut_id(struct buf *text, size_t start)
{
	/* the last one is of virtual threads: [main virtual=7] */
	static const char *const ids[] = {" tid", " pid", ""};
	size_t len = text->len, end = len ? len - 1 : 0;

	while (end > start && isdigit((unsigned char)text->data[end - 1]))
		end--;
	if (end + 1 >= len || end <= start || text->data[end - 1] != '=' || text->data[start] != '[' ||
	    text->data[len - 1] != ']')
		return;
	end--;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		size_t bytes = strlen(ids[i]);

		if (end < start + bytes || memcmp(text->data + end - bytes, ids[i], bytes))
			continue;
		buf_cut(text, end - bytes);
		buf_add_char(text, ']');
		return;
	}
}

void frame_name(const struct intern *strings, const struct frame *frame, const struct frame_style *style,
		struct buf *out)
{
	size_t start = out->len;

	if (frame_kind_is_java(frame->kind))
		add_java(strings, frame, style, out);
	else if (frame->kind <= FRAME_JVM)
		add_native(strings, frame, style, out);
	else if (frame->kind == FRAME_CLASS && style->simple)
		text_add_token(out, simple_class(intern_text(strings, frame->name)));
	else
		text_add_token(out, intern_text(strings, frame->name));
	if (style->steady && (frame->kind == FRAME_THREAD || frame->kind == FRAME_PROCESS))
		frame_cut_id(out, start);
	if (out->len == start)
		buf_add_str(out, frame->kind == FRAME_SPAN ? "[no tag]" : "[unknown]");
}

/* A Java native method runs in the compiled wrapper that HotSpot makes for it. */
const char *frame_suffix(const struct frame *frame, const struct frame_style *style)
{
	static const char *const suffixes[FRAME_KIND_MAX] = {
		[FRAME_KERNEL] = "_[k]",      [FRAME_COMPILED] = "_[j]",    [FRAME_INLINED] = "_[i]",
		[FRAME_INTERPRETED] = "_[0]", [FRAME_JAVA_NATIVE] = "_[j]", [FRAME_CLASS] = "_[i]",
	};
	enum frame_kind kind = frame->kind;
	bool is_outside = kind == FRAME_CLASS && frame->bci == FRAME_BCI_OUTSIDE;
	const char *suffix = kind < FRAME_KIND_MAX ? suffixes[is_outside ? FRAME_KERNEL : kind] : NULL;
	bool is_shown = kind == FRAME_CLASS ? !style->dotted : style->annotate || kind == FRAME_KERNEL;

	return suffix && is_shown ? suffix : "";
}
