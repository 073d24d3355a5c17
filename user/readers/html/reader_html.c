/* SPDX-License-Identifier: MIT */
/* Pages of duet, in whatever view they open, and flame graphs of async-profiler. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "readers/frame_text.h"
#include "readers/html/page_tree.h"
#include "readers/reader.h"

/*
 * ---- flame graphs of async-profiler, from version 2.0 on, and of its converter ----
 *
 * From 3.0 on, the page has a list of names, and a call a line for each frame in preorder: f(key,level,x,width), u(key)
 * for the frame above, n(key) for the next one of the same level. The key is the index of the name times 8, plus the
 * type. A width that is not there is that of the frame before. Before 3.0, f(level,x,width,type,'name') has the name.
 */

#define NAME_MAX_BYTES 8192
#define NUMBERS_MAX 8

/* Numbers of async-profiler's types of frames; how often a frame ran in each way is not kept. */
static const enum frame_kind kinds[8] = {
	FRAME_INTERPRETED, FRAME_COMPILED, FRAME_INLINED,  FRAME_NATIVE,
	FRAME_NATIVE,	   FRAME_KERNEL,   FRAME_COMPILED, FRAME_NATIVE,
};
/* Before 2.6 the type is an index of colours, and that of the root is 4. */
static const enum frame_kind old_kinds[8] = {
	FRAME_COMPILED, FRAME_INLINED, FRAME_KERNEL, FRAME_NATIVE,
	FRAME_NATIVE,	FRAME_NATIVE,  FRAME_NATIVE, FRAME_NATIVE,
};
#define OLD_ROOT 4

struct html {
	const char *at, *end;
	uint64_t number; /* of the line */
	struct page_tree tree;
	struct vec(uint32_t) names; /* ids in the profile's strings */
	struct map frames; /* name << 3 | type -> index in the profile: each row has a name of the list */
	struct buf name;
	const enum frame_kind *kinds;
	uint32_t level;
	uint64_t width;
	bool has_root;
	struct buf *why;
};

/* The next line, without its end. Returns false at the end of the text. */
static bool next_line(struct html *h, const char **ret_line, size_t *ret_len)
{
	const char *newline;

	if (h->at >= h->end)
		return false;
	newline = memchr(h->at, '\n', (size_t)(h->end - h->at));
	*ret_line = h->at;
	*ret_len = (size_t)((newline ? newline : h->end) - h->at);
	h->at = newline ? newline + 1 : h->end;
	if (*ret_len && (*ret_line)[*ret_len - 1] == '\r')
		(*ret_len)--;
	h->number++;
	return true;
}

static int refuse(struct html *h, const char *what)
{
	return buf_explain(h->why, -EINVAL, "line %llu %s", (unsigned long long)h->number, what);
}

static bool begins(const char *line, size_t len, const char *text)
{
	return len >= strlen(text) && !memcmp(line, text, strlen(text));
}

/* Appends the text of a string in quotes. Returns the place behind it, or NULL. */
static const char *unquote(const char *at, const char *end, struct buf *out)
{
	for (at++; at < end && *at != '\''; at++) {
		at += *at == '\\' && at + 1 < end && (at[1] == '\'' || at[1] == '\\');
		buf_add_char(out, *at);
	}
	return at < end ? at + 1 : NULL;
}

/* "'Xrest'": X says how many characters of the name before come first. They are ASCII, so they are bytes. */
static int read_name(struct html *h, const char *line, size_t len)
{
	BUF(packed);
	size_t shared;
	int err = 0;

	if (!unquote(line, line + len, &packed) || !packed.len || packed.data[0] < ' ') {
		err = refuse(h, "is not a name in quotes");
	} else {
		shared = h->names.len ? (size_t)(packed.data[0] - ' ') : 0;
		if (shared > h->name.len)
			err = refuse(h, "shares more than the name before has");
		buf_cut(&h->name, shared < h->name.len ? shared : h->name.len);
		buf_add_str(&h->name, packed.data + (h->names.len > 0));
		if (h->name.len > NAME_MAX_BYTES)
			buf_cut(&h->name, NAME_MAX_BYTES);
		if (!err && (h->name.failed || packed.failed ||
			     vec_push(&h->names, intern_str(&h->tree.profile->strings, h->name.data)) < 0))
			err = -ENOMEM;
	}
	return err;
}

/* The list begins after "const cpool = [". The first name is "all", whole. */
static int read_names(struct html *h)
{
	const char *line;
	size_t len;
	int err = 0;

	while (!err && h->at < h->end && *h->at == '\'' && next_line(h, &line, &len))
		err = read_name(h, line, len);
	if (!err && h->names.len)
		h->name.len = 0; /* the names are complete */
	return err;
}

struct call {
	char function;
	uint64_t numbers[NUMBERS_MAX];
	size_t count;
	bool has_name; /* in html.name */
};

static bool read_number(const char **at, const char *end, uint64_t *ret)
{
	uint64_t number = 0;

	if (*at == end || !isdigit((unsigned char)**at))
		return false;
	for (; *at < end && isdigit((unsigned char)**at); (*at)++) {
		if (number > UINT64_MAX / 16)
			return false;
		number = number * 10 + (uint64_t)(**at - '0');
	}
	*ret = number;
	return true;
}

/* "f(8,2,0,12)" or "f(2,0,12,1,'name')". Returns false for other text. */
static bool read_call(struct html *h, const char *line, size_t len, struct call *ret)
{
	const char *at = line + 2, *end = line + len;

	*ret = (struct call){.function = len > 3 ? line[0] : 0};
	if (len < 4 || !strchr("fun", line[0]) || line[1] != '(')
		return false;
	while (at < end && *at != ')') {
		if (*at == '\'') {
			buf_clear(&h->name);
			at = unquote(at, end, &h->name);
			ret->has_name = true;
		} else if (ret->count == NUMBERS_MAX || !read_number(&at, end, &ret->numbers[ret->count++])) {
			return false;
		}
		if (!at || at == end || (*at != ',' && *at != ')'))
			return false;
		at += *at == ',';
	}
	return at < end;
}

static uint32_t frame_of(struct html *h, enum frame_kind kind, const char *name)
{
	struct frame frame = page_frame(h->tree.profile, kind, name, "");

	if (name[0] == '[' && kind == FRAME_NATIVE) /* a thread, or a mark */
		frame.kind = frame_kind_of_brackets(name, strlen(name));
	return profile_frame(h->tree.profile, &frame);
}

static int add_frame(struct html *h, uint64_t level, uint32_t frame)
{
	if (!level) {
		if (h->has_root)
			return refuse(h, "is a second root");
		h->has_root = true;
		return page_tree_init(&h->tree, h->width, h->width);
	}
	if (level > UINT32_MAX || !h->has_root)
		return refuse(h, "is a frame without a root");
	return page_tree_add(&h->tree, (uint32_t)level, frame, h->width, h->width, h->why);
}

/* Of 3.0 and later. */
static int take_keyed(struct html *h, const struct call *call)
{
	size_t at = call->function == 'f' ? 3 : 1; /* of the width */
	uint64_t key = call->numbers[0], name = key >> 3;
	uint64_t level = h->level, frame = UINT32_MAX;

	if (!call->count || (call->function == 'f' && call->count < 3) || name >= h->names.len)
		return refuse(h, "has no such name");
	if (call->function != 'n')
		level = call->function == 'f' ? call->numbers[1] : level + 1;
	if (level > h->level + 1ull && h->has_root)
		return refuse(h, "is a frame without a caller");
	h->level = (uint32_t)level;
	h->width = call->count > at ? call->numbers[at] : h->width;
	if (level && !map_get(&h->frames, key, &frame)) {
		frame = frame_of(h, kinds[key & 7], intern_text(&h->tree.profile->strings, h->names.items[name]));
		if (map_put(&h->frames, key, frame) < 0)
			return -ENOMEM;
	}
	return add_frame(h, level, (uint32_t)frame);
}

/* Of 2.x. */
static int take_named(struct html *h, const struct call *call)
{
	uint32_t frame = UINT32_MAX;

	if (call->count < 4 || call->function != 'f')
		return refuse(h, "is not a frame");
	if (!call->numbers[0])
		h->kinds = call->numbers[3] == OLD_ROOT ? old_kinds : kinds;
	h->width = call->numbers[2];
	if (call->numbers[0])
		frame = frame_of(h, (h->kinds ? h->kinds : kinds)[call->numbers[3] & 7], h->name.data);
	return add_frame(h, call->numbers[0], frame);
}

/* The frames end with a line of another form; a differential flame graph has "d=5" between them. */
static int read_frames(struct html *h, const char *line, size_t len)
{
	struct call call;
	int err = 0;

	do {
		if (begins(line, len, "d="))
			continue;
		if (!len || !strchr("fun", line[0]) || len < 2 || line[1] != '(')
			break;
		if (!read_call(h, line, len, &call))
			return refuse(h, "is not a frame");
		err = call.has_name ? take_named(h, &call) : take_keyed(h, &call);
	} while (!err && next_line(h, &line, &len));
	return err;
}

/* Passes over the page up to the first frame. Returns 1 if there is one, else 0, or -errno. */
static int find_frames(struct html *h, const char **ret_line, size_t *ret_len)
{
	int err = 0;

	while (!err && next_line(h, ret_line, ret_len)) {
		if (begins(*ret_line, *ret_len, "const cpool"))
			err = read_names(h);
		else if (*ret_len > 3 && strchr("fun", **ret_line) && (*ret_line)[1] == '(' &&
			 isdigit((unsigned char)(*ret_line)[2]))
			return 1;
	}
	return err;
}

static int read_page(struct html *h)
{
	const char *line;
	size_t len;
	int err = find_frames(h, &line, &len);

	if (err <= 0)
		return err;
	err = read_frames(h, line, len);
	if (!err)
		err = page_tree_end(&h->tree, h->why);
	return err ? err : 1;
}

/*
 * Reads the frames of a page. Returns 1, or 0 if it has none of this form, or -errno with one sentence in `why`. Of a
 * differential flame graph, it reads the newer profile. The event is READER_SAMPLES: the page does not name it.
 */
static int html_async_read(struct profile *profile, const char *text, size_t len, struct buf *why)
{
	struct html h = {.at = text, .end = text + len, .why = why, .name = BUF_NONE, .tree = {.profile = profile}};
	int err;

	h.tree.thread = profile_thread(profile, 0, 0, "", "", 0);
	h.tree.event = profile_event(profile, READER_SAMPLES, PROFILE_COUNT, 1);
	profile->processes = PROFILE_NEVER;
	err = read_page(&h);
	page_tree_release(&h.tree);
	vec_release(&h.names);
	map_release(&h.frames);
	buf_release(&h.name);
	return err;
}

#define HTML_MAX ((size_t)512 << 20) /* its columns take some three times as much memory */

static int read_either(struct profile *profile, const struct buf *text, struct buf *why)
{
	const char *begin = memmem(text->data, text->len, HTML_DUET_BEGIN, strlen(HTML_DUET_BEGIN));
	const char *end = begin ? memmem(begin, text->len - (size_t)(begin - text->data), "</script>", 9) : NULL;
	int got;

	if (begin && !end)
		return buf_explain(why, -EINVAL, "the page ends within its data");
	if (begin) {
		begin += strlen(HTML_DUET_BEGIN);
		return html_duet_read(profile, begin, (size_t)(end - begin), why);
	}
	got = html_async_read(profile, text->data, text->len, why);
	if (!got)
		buf_add_str(why,
			    "neither a page of duet nor a flame graph of async-profiler; other trees and heat maps "
			    "cannot be read");
	return got > 0 ? 0 : got ? got : -EINVAL;
}

static int html_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	BUF(text);
	int err = reader_contents(source, HTML_MAX, &text, why);

	return err ? err : read_either(profile, &text, why);
}

static bool html_claims(const unsigned char *start, size_t len)
{
	const char *text = (const char *)start;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	while (len && strchr(" \t\r\n", *text) && *text) {
		text++;
		len--;
	}
	return (len >= 9 && !strncasecmp(text, "<!doctype", 9)) || (len >= 5 && !strncasecmp(text, "<html", 5));
}

const struct reader reader_html = {
	.name = "html",
	.help = "pages of duet, and flame graphs of async-profiler",
	.claims = html_claims,
	.read = html_read,
};
