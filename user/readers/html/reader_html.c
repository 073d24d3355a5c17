/* SPDX-License-Identifier: MIT */
/* Pages of duet, in whatever view they open, and flame graphs of async-profiler. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "readers/html/async.h"
#include "readers/html/duet.h"
#include "readers/readers.h"

#define HTML_MAX ((size_t)512 << 20) /* its columns take some three times as much memory */
#define PIECE ((size_t)1 << 20)

/* Appends the whole file. Returns 0 or -errno. */
static int read_text(struct reader_source *source, struct buf *text)
{
	ssize_t got;

	do {
		if (text->len > HTML_MAX)
			return -EFBIG;
		got = buf_reserve(text, PIECE) ? reader_bytes(source, text->data + text->len, PIECE) : -ENOMEM;
		if (got < 0)
			return (int)got;
		text->len += (size_t)got;
		text->data[text->len] = '\0';
	} while ((size_t)got == PIECE);
	return 0;
}

static int read_page(struct profile *profile, const struct buf *text, struct buf *why)
{
	const char *begin = memmem(text->data, text->len, HTML_DUET_BEGIN, strlen(HTML_DUET_BEGIN));
	const char *end = begin ? memmem(begin, text->len - (size_t)(begin - text->data), "</script>", 9) : NULL;
	int got;

	if (begin && !end) {
		buf_add_str(why, "the page ends within its data");
		return -EINVAL;
	}
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
	struct buf text;
	int err;

	buf_init(&text);
	err = read_text(source, &text);
	if (!err)
		err = read_page(profile, &text, why);
	if (err == -EFBIG && !why->len)
		buf_printf(why, "a page has more than %zu MB", HTML_MAX >> 20);
	if (err < 0 && !why->len)
		buf_add_str(why, strerror(-err));
	buf_release(&text);
	return err;
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
