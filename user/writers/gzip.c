/* SPDX-License-Identifier: MIT */
#include "writers/gzip.h"

#include <errno.h>
#include <limits.h>

#define WINDOW_OF_GZIP (15 + 16) /* the largest, with gzip's header */

int gzip_open(struct gzip *gzip, FILE *out)
{
	gzip->z = (z_stream){0};
	gzip->out = out;
	return deflateInit2(&gzip->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_OF_GZIP, 8, Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

static void run(struct gzip *gzip, int flush)
{
	do {
		gzip->z.next_out = gzip->packed;
		gzip->z.avail_out = sizeof(gzip->packed);
		(void)deflate(&gzip->z, flush); /* the output buffer has room, so this cannot fail */
		fwrite(gzip->packed, 1, sizeof(gzip->packed) - gzip->z.avail_out, gzip->out);
	} while (!gzip->z.avail_out);
}

void gzip_add(struct gzip *gzip, const void *bytes, size_t len)
{
	while (len) {
		uInt part = len < UINT_MAX ? (uInt)len : UINT_MAX;

		gzip->z.next_in = (unsigned char *)bytes;
		gzip->z.avail_in = part;
		run(gzip, Z_NO_FLUSH);
		bytes = (const char *)bytes + part;
		len -= part;
	}
}

void gzip_close(struct gzip *gzip)
{
	run(gzip, Z_FINISH);
	deflateEnd(&gzip->z);
}
