/* SPDX-License-Identifier: MIT */
#include "readers/gunzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#define CHUNK 65536
#define WINDOW_OF_GZIP (15 + 16) /* the largest, with gzip's header */
/* A small file must not cost much. Recordings become 3 to 20 times as long. */
#define FREE_BYTES (64u << 20)
#define TIMES_MAX 200

struct gunzip {
	z_stream z;
	int fd;
	uint64_t in_bytes, out_bytes; /* so far */
	bool is_between; /* between two members of the file, where it may end */
	unsigned char chunk[CHUNK];
};

struct gunzip *gunzip_open(int fd, const unsigned char *start, size_t len)
{
	struct gunzip *gunzip = len <= CHUNK ? calloc(1, sizeof(*gunzip)) : NULL;

	if (!gunzip)
		return NULL;
	gunzip->fd = fd;
	gunzip->in_bytes = len;
	memcpy(gunzip->chunk, start, len);
	gunzip->z.next_in = gunzip->chunk;
	gunzip->z.avail_in = (uInt)len;
	if (inflateInit2(&gunzip->z, WINDOW_OF_GZIP) == Z_OK)
		return gunzip;
	free(gunzip);
	return NULL;
}

void gunzip_close(struct gunzip *gunzip)
{
	if (!gunzip)
		return;
	inflateEnd(&gunzip->z);
	free(gunzip);
}

/* Returns 1, 0 at the end of the file, or -errno. */
static int fill(struct gunzip *gunzip)
{
	ssize_t got;

	if (gunzip->z.avail_in)
		return 1;
	do
		got = read(gunzip->fd, gunzip->chunk, CHUNK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (!got)
		return gunzip->is_between ? 0 : -EILSEQ;
	gunzip->z.next_in = gunzip->chunk;
	gunzip->z.avail_in = (uInt)got;
	gunzip->in_bytes += (uint64_t)got;
	return 1;
}

static int inflate_more(struct gunzip *gunzip)
{
	int code = inflate(&gunzip->z, Z_NO_FLUSH);

	gunzip->is_between = code == Z_STREAM_END;
	if (code == Z_STREAM_END)
		return inflateReset(&gunzip->z) == Z_OK ? 0 : -ENOMEM;
	return code == Z_OK || code == Z_BUF_ERROR ? 0 : -EILSEQ;
}

ssize_t gunzip_read(struct gunzip *gunzip, void *bytes, size_t len)
{
	int more = 1;

	gunzip->z.next_out = bytes;
	gunzip->z.avail_out = len < CHUNK * 1024u ? (uInt)len : CHUNK * 1024u;
	while (gunzip->z.avail_out && (more = fill(gunzip)) > 0) {
		int err = inflate_more(gunzip);

		if (err)
			return err;
	}
	if (more < 0)
		return more;
	len = (size_t)((unsigned char *)gunzip->z.next_out - (unsigned char *)bytes);
	gunzip->out_bytes += len;
	if (gunzip->out_bytes > FREE_BYTES && gunzip->out_bytes / TIMES_MAX > gunzip->in_bytes)
		return -EILSEQ;
	return (ssize_t)len;
}
