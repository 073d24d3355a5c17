/* SPDX-License-Identifier: MIT */
/*
 * duet's own format. Each chunk holds the rows that were added to the profile since the previous chunk, so row numbers
 * in the file are indices in the profile. From time to time a chunk begins again with all rows. So the chunks after it
 * can be read even if an earlier one is damaged.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "profile/layout.h"
#include "writers/writer.h"

#define FULL_BYTES (LAYOUT_SECTION_MAX / 2) /* leaves room for one more row and its strings */
#define FULL_SAMPLES (65536 * 40) /* bytes */
#define PACK_MIN 64 /* bytes; smaller sections are not compressed */
#define PACK_LEVEL 1 /* zlib's fastest: the recorder does this while it records */
/* The tables are repeated when the samples written since the last repetition take more than both of these. */
#define ANEW_MIN (1u << 20) /* bytes */
#define ANEW_TIMES 8 /* times the size of the tables */

struct writer_stream {
	const struct profile *profile;
	FILE *out;
	struct buf sections[LAYOUT_TYPES]; /* rows of the next chunk, see profile/layout.h */
	struct buf columns, body; /* scratch */
	uint32_t part; /* number of the next chunk */
	uint64_t tables_bytes, samples_bytes; /* bytes in the file since part 0 */
	struct vec(uint32_t) texts; /* id of a string -> its number in the file; 0 = not written yet */
	uint32_t text_count;
	size_t events, frames, owners, threads, nodes; /* numbers of rows of the profile that the file has */
	size_t notes, usages; /* the same; like samples, these are not repeated */
	bool is_begun; /* the file has the first profile->samples.written samples */
	int64_t whole_bytes; /* of the file up to the last whole append; -1 = it is no regular file */
	int err;
};

/*
 * Appends the compressed rows to the body. Returns their size, 0 if compression does not make them smaller, or
 * -ENOMEM.
 */
static int64_t pack(struct writer_stream *stream, const struct buf *rows, size_t row_bytes)
{
	uLongf packed = compressBound(rows->len);
	const void *from = rows->data;
	size_t at = stream->body.len;

	if (rows->len < PACK_MIN)
		return 0;
	if (!buf_reserve(&stream->body, packed) || !buf_reserve(&stream->columns, rows->len))
		return -ENOMEM;
	if (row_bytes) {
		layout_to_columns((unsigned char *)stream->columns.data, from, rows->len / row_bytes, row_bytes);
		from = stream->columns.data;
	}
	if (compress2((Bytef *)stream->body.data + at, &packed, from, rows->len, PACK_LEVEL) != Z_OK)
		return -ENOMEM;
	if (packed >= rows->len)
		return 0;
	stream->body.len = at + packed;
	return (int64_t)packed;
}

/* Returns the size of the section in the file, or -ENOMEM. */
static int64_t add_section(struct writer_stream *stream, enum layout_type type)
{
	const struct buf *rows = &stream->sections[type];
	struct layout_section section = {
		.type = type,
		.row_bytes = layout_rows[type].bytes,
		.raw_bytes = (uint32_t)rows->len,
		.stored_bytes = (uint32_t)rows->len,
	};
	size_t at = stream->body.len;
	int64_t packed;

	buf_add(&stream->body, &section, sizeof(section));
	packed = stream->body.failed ? -ENOMEM : pack(stream, rows, section.row_bytes);
	if (packed < 0)
		return packed;
	if (packed) {
		section.coding = LAYOUT_DEFLATE;
		section.stored_bytes = (uint32_t)packed;
		memcpy(stream->body.data + at, &section, sizeof(section));
	} else {
		buf_add(&stream->body, rows->data, rows->len);
	}
	return stream->body.failed ? -ENOMEM : (int64_t)(stream->body.len - at);
}

static uint32_t crc_of(const void *bytes, size_t len)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)len);
}

/* Writes the chunk of the rows so far, and empties it. The file's stream keeps errors of writing. */
static void write_chunk(struct writer_stream *stream, uint32_t flags)
{
	struct layout_chunk header = {.magic = LAYOUT_CHUNK_MAGIC, .part = stream->part++, .flags = flags};

	buf_clear(&stream->body);
	for (enum layout_type type = LAYOUT_TEXTS; type < LAYOUT_TYPES; type++) {
		int64_t stored;

		if (!stream->sections[type].failed && !stream->sections[type].len)
			continue;
		stored = stream->sections[type].failed ? -ENOMEM : add_section(stream, type);
		if (stored < 0) {
			stream->err = stream->err ? stream->err : -ENOMEM;
			return;
		}
		*(type == LAYOUT_SAMPLES ? &stream->samples_bytes : &stream->tables_bytes) += (uint64_t)stored;
		header.sections++;
		buf_clear(&stream->sections[type]);
	}
	header.body_bytes = stream->body.len;
	header.body_crc = crc_of(stream->body.data, stream->body.len);
	header.crc = crc_of(&header, offsetof(struct layout_chunk, crc));
	fwrite(&header, sizeof(header), 1, stream->out);
	fwrite(stream->body.data, 1, stream->body.len, stream->out);
}

/* A layout_text. Writes the string if the file does not have it. */
static uint32_t number_of_text(void *context, uint32_t id)
{
	struct writer_stream *stream = context;
	const char *text;
	uint32_t len;

	if (!id)
		return 0;
	if (id >= stream->texts.len && vec_reserve(&stream->texts, id + 1) < 0) {
		stream->err = -ENOMEM;
		return 0;
	}
	while (stream->texts.len <= id)
		stream->texts.items[stream->texts.len++] = 0;
	if (!stream->texts.items[id]) {
		text = profile_text(stream->profile, id);
		len = (uint32_t)strnlen(text, LAYOUT_TEXT_MAX);
		buf_add(&stream->sections[LAYOUT_TEXTS], &len, sizeof(len));
		buf_add(&stream->sections[LAYOUT_TEXTS], text, len);
		stream->texts.items[id] = ++stream->text_count;
	}
	return stream->texts.items[id];
}

static void add_row(struct writer_stream *stream, enum layout_type type, const void *row)
{
	struct buf *rows = &stream->sections[type];

	layout_put(type, row, number_of_text, stream, rows);
	/* Losses and facts must be in one section. */
	if (type != LAYOUT_LOSSES && type != LAYOUT_FACTS &&
	    (rows->len >= (type == LAYOUT_SAMPLES ? FULL_SAMPLES : FULL_BYTES) ||
	     stream->sections[LAYOUT_TEXTS].len >= FULL_BYTES))
		write_chunk(stream, 0);
}

static void add_thread(struct writer_stream *stream, size_t index)
{
	const struct profile *profile = stream->profile;
	struct layout_thread row = {.thread = profile->threads.items[index]};

	row.has_java_id = profile_java_id(profile, (uint32_t)index, &row.java_id);
	add_row(stream, LAYOUT_THREADS, &row);
}

static int add_sample(void *context, const struct profile_sample *sample)
{
	struct writer_stream *stream = context;
	struct profile_sample row = *sample;

	row.time_ns -= stream->profile->start_ns;
	add_row(stream, LAYOUT_SAMPLES, &row);
	return stream->err;
}

static void add_times(struct writer_stream *stream)
{
	const struct profile *profile = stream->profile;

	add_row(stream, LAYOUT_TIMES,
		&(struct layout_times){
			.start_realtime_ns = profile->start_realtime_ns,
			.length_ns = profile->end_ns - profile->start_ns,
			.processes = profile->processes,
			.is_private = profile->is_private,
		});
}

static void add_new_rows(struct writer_stream *stream)
{
	const struct profile *profile = stream->profile;

	for (; stream->events < profile->events.len; stream->events++)
		add_row(stream, LAYOUT_EVENTS, &profile->events.items[stream->events]);
	for (; stream->frames < profile->frames.len; stream->frames++)
		add_row(stream, LAYOUT_FRAMES, &profile->frames.items[stream->frames]);
	for (; stream->owners < profile->owners.len; stream->owners++)
		add_row(stream, LAYOUT_OWNERS, &profile->owners.items[stream->owners]);
	for (; stream->threads < profile->threads.len; stream->threads++)
		add_thread(stream, stream->threads);
	for (; stream->nodes < profile->nodes.len; stream->nodes++) {
		const struct stack_node *node = &profile->nodes.items[stream->nodes];

		add_row(stream, LAYOUT_NODES,
			&(struct layout_node){.up = (uint32_t)stream->nodes - node->parent, .frame = node->frame});
	}
	for (; stream->notes < profile->notes.len; stream->notes++) {
		struct profile_note row = profile->notes.items[stream->notes];

		row.time_ns -= profile->start_ns;
		add_row(stream, LAYOUT_NOTES, &row);
	}
	for (; stream->usages < profile->usages.len; stream->usages++) {
		struct profile_usage row = profile->usages.items[stream->usages];

		row.time_ns -= profile->start_ns;
		add_row(stream, LAYOUT_USAGES, &row);
	}
}

/* Adds the losses and facts known so far. */
static void add_report(struct writer_stream *stream)
{
	const struct profile *profile = stream->profile;

	for (size_t i = 0; i < profile->losses.len; i++)
		add_row(stream, LAYOUT_LOSSES, &profile->losses.items[i]);
	for (size_t i = 0; i < profile->facts.len; i++)
		add_row(stream, LAYOUT_FACTS, &profile->facts.items[i]);
}

/* The root node and the unknown owner are not stored. */
static void begin_anew(struct writer_stream *stream)
{
	stream->part = 0;
	stream->tables_bytes = stream->samples_bytes = 0;
	vec_clear(&stream->texts);
	stream->text_count = 0;
	stream->events = stream->frames = stream->threads = 0;
	stream->owners = stream->nodes = 1;
}

/* Options of style do not apply: the file has everything. */
static struct writer_stream *stream_open(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	const struct layout_start start = {.version = LAYOUT_VERSION, .bytes = sizeof(start), .magic = LAYOUT_MAGIC};
	struct writer_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->profile = profile;
	stream->out = out;
	stream->whole_bytes = ftello(out);
	for (size_t i = 0; i < LAYOUT_TYPES; i++)
		buf_init(&stream->sections[i]);
	buf_init(&stream->columns);
	buf_init(&stream->body);
	begin_anew(stream);
	fwrite(&start, sizeof(start), 1, out);
	return stream;
}

static int stream_append(struct writer_stream *stream, bool is_end)
{
	const struct timeline *samples = &stream->profile->samples;
	uint64_t id;
	int err;

	if (stream->samples_bytes > ANEW_MIN && stream->samples_bytes > ANEW_TIMES * stream->tables_bytes)
		begin_anew(stream);
	add_times(stream);
	add_row(stream, LAYOUT_HOST, &stream->profile->host);
	add_new_rows(stream);
	err = timeline_rest(samples, stream->is_begun ? samples->written : 0, add_sample, stream);
	stream->is_begun = true;
	/* a row that was written with an id may be shared by several threads now: then it has no id any more */
	for (size_t i = 0; is_end && i < stream->threads; i++)
		if (map_get(&stream->profile->virtual_ids, i, &id))
			add_thread(stream, i);
	add_report(stream);
	write_chunk(stream, is_end ? LAYOUT_END : 0);
	if (!err)
		err = stream->err;
	if (!err)
		err = writer_finish(stream->out);
	if (err)
		writer_rewind(stream->out, stream->whole_bytes);
	stream->whole_bytes = ftello(stream->out);
	return err;
}

static void stream_close(struct writer_stream *stream)
{
	if (!stream)
		return;
	for (size_t i = 0; i < LAYOUT_TYPES; i++)
		buf_release(&stream->sections[i]);
	buf_release(&stream->columns);
	buf_release(&stream->body);
	vec_release(&stream->texts);
	free(stream);
}

static int duet_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_stream *stream = stream_open(profile, options, out);
	int err = stream ? stream_append(stream, true) : -ENOMEM;

	stream_close(stream);
	return err;
}

const struct writer writer_duet = {
	.name = "duet",
	.extensions = "duet",
	.help = "all samples, written during the recording; duet convert makes the other formats from it",
	.has_all_events = true,
	.has_notes = true,
	.has_usages = true,
	.write = duet_write,
	.stream_open = stream_open,
	.stream_append = stream_append,
	.stream_close = stream_close,
};
