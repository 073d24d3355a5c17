/* SPDX-License-Identifier: MIT */
#include "writers/jfr/file.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/jfr.h"
#include "writers/writer.h"

/* size of the event that covers a part: its length, which always has 5 bytes here, and its type */
#define COVER_BYTES 6

void jfr_file_init(struct jfr_file *file, FILE *out)
{
	*file = (struct jfr_file){.out = out, .begin = ftello(out)};
	file->has_parts = file->begin >= 0;
	buf_init(&file->part);
}

void jfr_file_release(struct jfr_file *file)
{
	buf_release(&file->part);
}

uint64_t jfr_file_place(const struct jfr_file *file, size_t before)
{
	return (file->bytes ? file->bytes : sizeof(struct jfr_header)) + before;
}

static void put_at(struct jfr_file *file, int64_t at, const void *bytes, size_t len)
{
	if (!fseeko(file->out, at, SEEK_SET) && fwrite(bytes, 1, len, file->out) == len)
		(void)fflush(file->out);
}

static void put_number_at(struct jfr_file *file, int64_t at, uint64_t number)
{
	uint64_t bytes = htobe64(number);

	put_at(file, at, &bytes, sizeof(bytes));
}

static void put_size(struct jfr_file *file, int64_t begin, uint64_t bytes)
{
	put_number_at(file, begin + (int64_t)offsetof(struct jfr_header, bytes), bytes);
}

/*
 * Makes the chunk longer by an event that covers the bytes of the part. Readers skip it: it has the type of metadata,
 * which they find only by the header.
 */
static void cover(struct jfr_file *file, int64_t begin, uint64_t bytes)
{
	unsigned char event[COVER_BYTES], last = 0;
	uint64_t size = file->part.len;
	int64_t end = begin + (int64_t)bytes;

	for (size_t i = 0; i < COVER_BYTES - 1; i++, size >>= 7)
		event[i] = (unsigned char)(i < COVER_BYTES - 2 ? size | 0x80 : size);
	event[COVER_BYTES - 1] = JFR_METADATA;
	put_at(file, end, event, sizeof(event));
	put_at(file, end + (int64_t)file->part.len - 1, &last, 1);
	put_size(file, begin, bytes + file->part.len);
}

/* Writes the bytes of the part; those of the covering event are written last. */
static void put_covered(struct jfr_file *file, int64_t at, void (*before_last)(struct jfr_file *file))
{
	put_at(file, at + COVER_BYTES, file->part.data + COVER_BYTES, file->part.len - COVER_BYTES);
	if (before_last)
		before_last(file);
	put_at(file, at, file->part.data, COVER_BYTES);
}

static void put_pools_at(struct jfr_file *file)
{
	put_number_at(file, file->begin + (int64_t)offsetof(struct jfr_header, pools_at), file->pools_at);
}

/* Writes the first part of a chunk. The previous chunk covers it until it is complete. */
static void put_first(struct jfr_file *file)
{
	if (!file->closed) {
		fwrite(file->part.data, 1, file->part.len, file->out);
	} else {
		cover(file, file->closed_begin, file->closed);
		put_covered(file, file->begin, NULL);
		put_size(file, file->closed_begin, file->closed);
	}
}

static void add_header(struct jfr_file *file, uint64_t bytes, const struct jfr_times *times)
{
	const struct jfr_header header = {
		.magic = JFR_MAGIC,
		.major = htobe16(JFR_MAJOR),
		.bytes = htobe64(bytes),
		.pools_at = htobe64(file->pools_at),
		.metadata_at = htobe64(sizeof(header)),
		.start_ns = htobe64(times->start_ns),
		.duration_ns = htobe64(times->duration_ns),
		.start_ticks = htobe64(times->start_ticks),
		.ticks_per_second = htobe64(times->ticks_per_second),
		.features = htobe32(JFR_COMPRESSED),
	};

	buf_add(&file->part, &header, sizeof(header));
}

/* Makes the header describe the earlier parts again, and sets the position after them. */
static void repair(struct jfr_file *file, uint64_t pools_at)
{
	writer_rewind(file->out, file->begin + (int64_t)file->bytes);
	file->pools_at = pools_at;
	if (file->bytes) {
		put_size(file, file->begin, file->bytes);
		put_pools_at(file);
	} else if (file->closed) {
		put_size(file, file->closed_begin, file->closed);
	}
	writer_rewind(file->out, file->begin + (int64_t)file->bytes);
}

int jfr_file_append(struct jfr_file *file, const struct buf *metadata, const struct buf *events,
		    const struct buf *pools, const struct jfr_times *times)
{
	bool is_first = !file->bytes;
	size_t len = metadata->len + events->len + pools->len;
	uint64_t pools_before = file->pools_at;
	int err;

	if (pools->len)
		file->pools_at = jfr_file_place(file, metadata->len + events->len);
	buf_release(&file->part);
	if (!buf_reserve_only(&file->part, sizeof(struct jfr_header) + len))
		return -ENOMEM;
	if (is_first)
		add_header(file, sizeof(struct jfr_header) + len, times);
	buf_add(&file->part, metadata->data, metadata->len);
	buf_add(&file->part, events->data, events->len);
	buf_add(&file->part, pools->data, pools->len);
	if (file->part.failed)
		return -ENOMEM;
	errno = 0;
	if (is_first) {
		put_first(file);
	} else {
		cover(file, file->begin, file->bytes);
		put_covered(file, file->begin + (int64_t)file->bytes, put_pools_at);
		put_number_at(file, file->begin + (int64_t)offsetof(struct jfr_header, duration_ns),
			      times->duration_ns);
	}
	if (ferror(file->out)) {
		err = errno ? -errno : -EIO;
		if (file->has_parts)
			repair(file, pools_before);
		return err;
	}
	file->bytes += file->part.len;
	if (file->has_parts)
		(void)fseeko(file->out, file->begin + (int64_t)file->bytes, SEEK_SET);
	return 0;
}

void jfr_file_end_chunk(struct jfr_file *file)
{
	if (file->has_parts) {
		file->closed = file->bytes;
		file->closed_begin = file->begin;
	}
	file->begin += (int64_t)file->bytes;
	file->bytes = file->pools_at = 0;
}

/*
 * A reader that comes meanwhile sees a chunk that is not complete, and leaves it out. Nothing of them is covered: there
 * is no time after them in which a chunk is open.
 */
int jfr_file_add_chunks(struct jfr_file *file, int from)
{
	char bytes[16384];
	int64_t begin = file->begin;
	ssize_t more = 0;

	errno = 0;
	for (off_t at = 0; !ferror(file->out) && (more = pread(from, bytes, sizeof(bytes), at)) > 0; at += more)
		file->begin += (int64_t)fwrite(bytes, 1, (size_t)more, file->out);
	if (!ferror(file->out) && more == 0) {
		file->closed = 0;
		return 0;
	}
	file->begin = begin;
	if (file->has_parts)
		writer_rewind(file->out, begin);
	return errno ? -errno : -EIO;
}

int jfr_file_check(int file, struct jfr_header *ret_first)
{
	struct jfr_header header;
	struct stat st;
	off_t at = 0;

	if (fstat(file, &st) < 0)
		return -errno;
	while (at < st.st_size) {
		uint64_t bytes;

		if (pread(file, &header, sizeof(header), at) != sizeof(header))
			return -EBADMSG;
		bytes = be64toh(header.bytes);
		if (memcmp(header.magic, JFR_MAGIC, sizeof(header.magic)) != 0 || bytes < sizeof(header) ||
		    bytes > (uint64_t)(st.st_size - at) || !header.ticks_per_second)
			return -EBADMSG;
		if (!at)
			*ret_first = header;
		at += (off_t)bytes;
	}
	return at ? 0 : -EBADMSG;
}
