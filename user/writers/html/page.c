/* SPDX-License-Identifier: MIT */
#include "writers/html/page.h"

#include <errno.h>
#include <string.h>

#include "writers/writers.h"

/* After a failed write of a long part, the stream does not have the cause. */
static int put(FILE *out, const char *bytes, size_t len)
{
	return fwrite(bytes, 1, len, out) == len ? 0 : -errno;
}

int page_write(const char *page, size_t bytes, const struct page_insertion *insertions, size_t count,
	       const void *context, FILE *out)
{
	const char *at = page, *end = page + bytes;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		size_t len = strlen(insertions[i].marker);
		const char *marker = memmem(at, (size_t)(end - at), insertions[i].marker, len);

		if (!marker)
			return -EINVAL;
		err = put(out, at, (size_t)(marker - at));
		if (!err)
			err = insertions[i].write(context);
		at = marker + len;
	}
	if (!err)
		err = put(out, at, (size_t)(end - at));
	return err ? err : writer_finish(out);
}
