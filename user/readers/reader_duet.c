/* SPDX-License-Identifier: MIT */
/*
 * duet's own format. If the recorder was killed, the file is read up to its last complete chunk. A damaged chunk is
 * left out, together with the chunks that continue its row numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "readers/duet_tables.h"
#include "readers/readers.h"

#define PIECE (1u << 20) /* bytes read at once: the file may be shorter than a header says */
#define LONGEST_START 4096 /* bytes of the file's header */
#define SHORT_SECTION_MAX (1u << 20) /* bytes, unpacked, of a section that has few rows */

struct duet_file {
	struct reader_source *source;
	struct duet_tables tables;
	struct buf body, rows, columns;
	uint64_t at; /* offset of the chunk */
	struct layout_chunk chunk;
	uint32_t next_part; /* number of the part that may follow, unless that is 0; UINT32_MAX after a damaged chunk */
	uint64_t chunks, left_out;
	uint64_t first_left_out; /* offset */
	bool is_ended;
};

static bool duet_claims(const unsigned char *start, size_t len)
{
	return len >= LAYOUT_MAGIC_BYTES && !memcmp(start, LAYOUT_MAGIC, LAYOUT_MAGIC_BYTES);
}

static int refuse(struct buf *why, int err, const char *what)
{
	if (!why->len)
		buf_printf(why, "%s", err == -ENOMEM ? "out of memory" : what);
	return err;
}

/* ---- sections ---- */

/* Empties `ret` and makes room for `size` bytes. */
static int make_room(struct buf *ret, size_t size)
{
	buf_clear(ret);
	return buf_reserve(ret, size) ? 0 : -ENOMEM;
}

static int unpack(struct duet_file *file, const struct layout_section *section, const unsigned char *stored,
		  const unsigned char **ret_bytes)
{
	uLongf len = section->raw_bytes;
	unsigned char *columns, *rows;

	if (section->coding == LAYOUT_PLAIN) {
		*ret_bytes = stored;
		return section->raw_bytes == section->stored_bytes ? 0 : -EBADMSG;
	}
	if (make_room(&file->columns, section->raw_bytes) < 0 || make_room(&file->rows, section->raw_bytes) < 0)
		return -ENOMEM;
	columns = (unsigned char *)file->columns.data;
	rows = (unsigned char *)file->rows.data;
	if (section->coding != LAYOUT_DEFLATE ||
	    uncompress(columns, &len, stored, section->stored_bytes) != Z_OK || len != section->raw_bytes)
		return -EBADMSG;
	if (section->row_bytes)
		layout_from_columns(rows, columns, section->raw_bytes / section->row_bytes, section->row_bytes);
	*ret_bytes = section->row_bytes ? rows : columns;
	return 0;
}

/* What has one row, or some; unpacking it may cost as much as all the rest of the file. */
static bool is_short(uint16_t type)
{
	return type == LAYOUT_TIMES || type == LAYOUT_HOST || type == LAYOUT_EVENTS || type == LAYOUT_LOSSES ||
	       type == LAYOUT_FACTS;
}

static bool is_sound(const struct layout_section *section, size_t left)
{
	if (is_short(section->type) && section->raw_bytes > SHORT_SECTION_MAX)
		return false;
	return section->stored_bytes <= left && section->raw_bytes <= LAYOUT_SECTION_MAX &&
	       section->row_bytes <= LAYOUT_ROW_MAX &&
	       (section->row_bytes ? section->raw_bytes % section->row_bytes == 0 : section->type == LAYOUT_TEXTS);
}

static int read_section(struct duet_file *file, const unsigned char **at, const unsigned char *end, struct buf *why)
{
	const unsigned char *bytes = NULL;
	struct layout_section section;
	int err;

	if ((size_t)(end - *at) < sizeof(section))
		return -EBADMSG;
	memcpy(&section, *at, sizeof(section));
	*at += sizeof(section);
	if (!is_sound(&section, (size_t)(end - *at)))
		return -EBADMSG;
	if (section.type >= LAYOUT_TYPES) { /* of a newer duet */
		*at += section.stored_bytes;
		return 0;
	}
	err = unpack(file, &section, *at, &bytes);
	*at += section.stored_bytes;
	file->tables.file_bytes = file->source->offset;
	return err ? err : duet_tables_add(&file->tables, &section, bytes, why);
}

static int read_sections(struct duet_file *file, struct buf *why)
{
	const unsigned char *at = (const unsigned char *)file->body.data, *end = at + file->body.len;
	int err = file->chunk.part ? 0 : duet_tables_anew(&file->tables);
	struct buf cause;

	buf_init(&cause);
	for (uint32_t i = 0; !err && i < file->chunk.sections; i++)
		err = read_section(file, &at, end, &cause);
	if (err < 0 && err != -ENOMEM)
		buf_printf(why, "the chunk at byte %" PRIu64 " is invalid%s%s", file->at, cause.len ? ": " : "",
			   cause.data);
	buf_release(&cause);
	return err;
}

/* ---- chunks ---- */

static uint32_t crc_of(const void *bytes, size_t len)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)len);
}

static bool is_header(const struct layout_chunk *chunk)
{
	return chunk->magic == LAYOUT_CHUNK_MAGIC && chunk->crc == crc_of(chunk, offsetof(struct layout_chunk, crc)) &&
	       chunk->body_bytes <= LAYOUT_BODY_MAX && chunk->sections <= LAYOUT_SECTIONS_MAX;
}

/* Returns 1, 0 if the file ends before the end of the body, or -errno. */
static int read_body(struct duet_file *file)
{
	struct buf *body = &file->body;
	size_t left = (size_t)file->chunk.body_bytes;

	for (buf_clear(body); left;) {
		size_t piece = left < PIECE ? left : PIECE;
		ssize_t got;

		if (!buf_reserve(body, piece))
			return -ENOMEM;
		got = reader_bytes(file->source, body->data + body->len, piece);
		if (got < 0)
			return (int)got;
		body->len += (size_t)got;
		left -= (size_t)got;
		if ((size_t)got < piece)
			return 0;
	}
	return 1;
}

static void leave_out(struct duet_file *file)
{
	file->next_part = UINT32_MAX;
	if (!file->left_out++)
		file->first_left_out = file->at;
}

/* Returns 1 if another chunk may follow, 0 at the end, or -errno. */
static int read_chunk(struct duet_file *file, struct buf *why)
{
	const struct layout_chunk *chunk = &file->chunk;
	ssize_t got;
	int err;

	file->at = file->source->offset;
	got = reader_bytes(file->source, &file->chunk, sizeof(file->chunk));
	if (got < (ssize_t)sizeof(file->chunk))
		return got < 0 ? (int)got : 0;
	if (!is_header(chunk)) {
		leave_out(file);
		return 0;
	}
	err = read_body(file);
	if (err <= 0)
		return err;
	if (crc_of(file->body.data, file->body.len) != chunk->body_crc ||
	    (chunk->part && chunk->part != file->next_part)) {
		leave_out(file);
		return 1;
	}
	err = read_sections(file, why);
	if (err < 0)
		return err;
	file->next_part = chunk->part + 1;
	file->is_ended = chunk->flags & LAYOUT_END;
	file->chunks++;
	return 1;
}

/* ---- the file ---- */

static int read_start(struct duet_file *file, struct buf *why)
{
	unsigned char rest[LONGEST_START];
	struct layout_start start;
	ssize_t got = reader_bytes(file->source, &start, sizeof(start));

	if (got < 0)
		return (int)got;
	if (got < (ssize_t)sizeof(start))
		return refuse(why, -ENODATA, "it ends within its header");
	if (start.version != LAYOUT_VERSION) {
		buf_printf(why, "it is of version %u, this duet reads version %d: use a newer duet", start.version,
			   LAYOUT_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (start.bytes < sizeof(start) || start.bytes > sizeof(rest))
		return refuse(why, -EBADMSG, "its header is damaged");
	got = reader_bytes(file->source, rest, start.bytes - sizeof(start));
	return got < 0 ? (int)got : 0;
}

/* Also adds what is missing to the facts, so that output files report it. */
static void report_missing(struct duet_file *file)
{
	struct profile *profile = file->tables.profile;
	struct buf *warning = &file->source->warning;

	if (file->left_out)
		buf_printf(warning,
			   "%" PRIu64 " of %" PRIu64 " chunks are damaged or depend on a damaged one, the first at "
			   "byte %" PRIu64 ": their samples are missing",
			   file->left_out, file->left_out + file->chunks, file->first_left_out);
	if (!file->is_ended)
		buf_printf(warning,
			   "%sthe recording was cut short after %.1f s: later samples, totals and losses are missing",
			   warning->len ? "; " : "", (double)(profile->end_ns - profile->start_ns) / 1e9);
	if (warning->len)
		profile_add_fact(profile, "incomplete", "%s", warning->data);
}

static int read_file(struct duet_file *file, struct buf *why)
{
	int err = read_start(file, why);

	if (!err)
		err = duet_tables_anew(&file->tables);
	if (err < 0)
		return err;
	do
		err = read_chunk(file, why);
	while (err > 0);
	if (err < 0)
		return err;
	if (!file->chunks)
		return refuse(why, -ENODATA, file->left_out ? "its first chunk is damaged" :
							      "it ends before the end of its first chunk");
	duet_tables_finish(&file->tables);
	report_missing(file);
	return 0;
}

static int duet_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct duet_file file = {.source = source};
	int err;

	duet_tables_init(&file.tables, profile);
	buf_init(&file.body);
	buf_init(&file.rows);
	buf_init(&file.columns);
	err = read_file(&file, why);
	if (err < 0)
		refuse(why, err, strerror(-err));
	buf_release(&file.body);
	buf_release(&file.rows);
	buf_release(&file.columns);
	duet_tables_release(&file.tables);
	return err;
}

const struct reader reader_duet = {
	.name = "duet",
	.help = "recordings made with duet record -o duet",
	.claims = duet_claims,
	.read = duet_read,
};
