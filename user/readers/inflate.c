/* SPDX-License-Identifier: MIT */
#include "readers/inflate.h"

#include <errno.h>
#include <string.h>

#include <zlib.h>

#define CHUNK 16384
#define WINDOW_OF_GZIP (15 + 16) /* the largest, with gzip's header */

struct inflater {
	z_stream z;
	struct reader_source *source;
	unsigned char chunk[CHUNK];
	bool is_between; /* between two members of the file, where it may end */
};

bool inflate_is_gzip(const unsigned char *start, size_t len)
{
	return len >= 2 && start[0] == 0x1f && start[1] == 0x8b;
}

size_t inflate_start(const unsigned char *start, size_t len, unsigned char *to, size_t size)
{
	z_stream z = {
		.next_in = (unsigned char *)start,
		.avail_in = (uInt)len,
		.next_out = to,
		.avail_out = (uInt)size,
	};

	if (inflateInit2(&z, WINDOW_OF_GZIP) != Z_OK)
		return 0;
	(void)inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	return size - z.avail_out;
}

static int too_long(size_t max, struct buf *why)
{
	buf_printf(why, "the contents have more than %zu MB", max >> 20);
	return -EFBIG;
}

static int read_plain(struct reader_source *source, size_t max, struct buf *to, struct buf *why)
{
	ssize_t got = CHUNK;

	while (got == CHUNK) {
		if (to->len > max)
			return too_long(max, why);
		if (!buf_reserve(to, CHUNK))
			return -ENOMEM;
		got = reader_bytes(source, to->data + to->len, CHUNK);
		if (got < 0)
			return (int)got;
		to->len += (size_t)got;
	}
	return to->len > max ? too_long(max, why) : 0;
}

/* Returns 1 at the end of the file, else 0 or -errno. */
static int fill(struct inflater *in, struct buf *why)
{
	ssize_t got;

	if (in->z.avail_in)
		return 0;
	got = reader_bytes(in->source, in->chunk, CHUNK);
	if (got < 0)
		return (int)got;
	if (!got && in->is_between)
		return 1;
	if (!got) {
		buf_printf(why, "the compressed data end too early, at byte %llu",
			   (unsigned long long)in->source->offset);
		return -EINVAL;
	}
	in->z.next_in = in->chunk;
	in->z.avail_in = (uInt)got;
	return 0;
}

static int inflate_more(struct inflater *in, struct buf *to, struct buf *why)
{
	int code;

	if (!buf_reserve(to, CHUNK))
		return -ENOMEM;
	in->z.next_out = (unsigned char *)to->data + to->len;
	in->z.avail_out = CHUNK;
	code = inflate(&in->z, Z_NO_FLUSH);
	to->len += CHUNK - in->z.avail_out;
	in->is_between = code == Z_STREAM_END;
	if (code == Z_STREAM_END)
		return inflateReset(&in->z) == Z_OK ? 0 : -ENOMEM;
	if (code == Z_OK || code == Z_BUF_ERROR)
		return 0;
	buf_printf(why, "the compressed data are damaged before byte %llu", (unsigned long long)in->source->offset);
	return -EINVAL;
}

static int read_gzip(struct reader_source *source, size_t max, struct buf *to, struct buf *why)
{
	struct inflater in = {.source = source};
	int err = inflateInit2(&in.z, WINDOW_OF_GZIP) == Z_OK ? 0 : -ENOMEM;

	if (err)
		return err;
	while (!(err = fill(&in, why))) {
		err = inflate_more(&in, to, why);
		if (!err && to->len > max)
			err = too_long(max, why);
		if (err)
			break;
	}
	inflateEnd(&in.z);
	return err < 0 ? err : 0;
}

int inflate_source(struct reader_source *source, size_t max, struct buf *to, struct buf *why)
{
	bool is_gzip = inflate_is_gzip(source->start, source->start_len);
	int err = is_gzip ? read_gzip(source, max, to, why) : read_plain(source, max, to, why);

	if (err && !why->len)
		buf_add_str(why, strerror(-err));
	return err;
}
