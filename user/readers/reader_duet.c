/* SPDX-License-Identifier: MIT */
/*
 * duet's own format. If the recorder was killed, the file is read up to its last complete chunk. A damaged chunk is
 * left out, together with the chunks that continue its row numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/layout.h"
#include "profile/profile.h"
#include "readers/reader.h"

/* ---- the rows of the file become rows of the profile's tables; every number is checked before it is used ---- */

/* Row number in the file, since numbers last began again -> index in the profile. */
struct duet_numbers vec(uint32_t);

struct duet_tables {
	struct profile *profile;
	struct duet_numbers texts, events, frames, owners, threads, nodes;
	struct duet_numbers depths; /* depth of each node of the profile */
	struct layout_times times; /* the times that were read last */
	uint64_t rows; /* samples of all sections so far; rows of tables and strings count as TABLE_ROW of them */
	uint64_t file_bytes; /* set by the caller: read so far */
	struct buf why; /* the cause of an error in a chunk */
};

#define ROWS_FREE (2u << 20) /* however short the file */
#define ROWS_PER_BYTE 8
#define TABLE_ROW 4
#define TABLES_FREE ((uint64_t)24 << 20) /* bytes of the profile's tables; the same */
#define TABLES_PER_BYTE 40
#define ROWS_AT_ONCE 65536 /* after so many, the limits are looked at */

static void duet_tables_release(struct duet_tables *tables)
{
	vec_release(&tables->texts);
	vec_release(&tables->events);
	vec_release(&tables->frames);
	vec_release(&tables->owners);
	vec_release(&tables->threads);
	vec_release(&tables->nodes);
	vec_release(&tables->depths);
	buf_release(&tables->why);
}

/* Begins row numbers again. The empty string, the unknown owner and the root are not stored. Returns 0 or -ENOMEM. */
static int duet_tables_anew(struct duet_tables *tables)
{
	vec_clear(&tables->texts);
	vec_clear(&tables->events);
	vec_clear(&tables->frames);
	vec_clear(&tables->owners);
	vec_clear(&tables->threads);
	vec_clear(&tables->nodes);
	if (!tables->depths.len && vec_push(&tables->depths, 0) < 0)
		return -ENOMEM;
	if (vec_push(&tables->texts, 0) < 0 || vec_push(&tables->owners, 0) < 0)
		return -ENOMEM;
	return vec_push(&tables->nodes, 0);
}

static uint32_t bad(struct duet_tables *tables, const char *what)
{
	buf_add_str(&tables->why, what);
	return UINT32_MAX;
}

/*
 * Rows that are all alike take nearly no bytes in the file. Rows of recordings take one or more, but samples, which may
 * be as regular as a clock. Refuses more rows, and larger tables, than so many bytes can have.
 */
static int count_row(struct duet_tables *tables, unsigned int cost)
{
	tables->rows += cost;
	if (tables->rows % ROWS_AT_ONCE >= cost)
		return 0;
	if (tables->rows <= ROWS_FREE + ROWS_PER_BYTE * tables->file_bytes &&
	    profile_bytes(tables->profile) <= TABLES_FREE + TABLES_PER_BYTE * tables->file_bytes)
		return 0;
	(void)bad(tables, "it has too many rows for so short a file");
	return -EFBIG;
}

/* ---- strings ---- */

static int add_text(struct duet_tables *tables, const unsigned char *text, uint32_t len)
{
	int err = count_row(tables, TABLE_ROW);

	if (err)
		return err;
	return vec_push(&tables->texts, intern_bytes(&tables->profile->strings, (const char *)text, len));
}

static int add_texts(struct duet_tables *tables, const struct layout_section *section, const unsigned char *bytes)
{
	const unsigned char *end = bytes + section->raw_bytes;
	int err = 0;

	for (uint32_t len; !err && bytes < end; bytes += len) {
		if ((size_t)(end - bytes) < sizeof(len))
			len = UINT32_MAX;
		else
			memcpy(&len, bytes, sizeof(len));
		if (len > LAYOUT_TEXT_MAX || len > (size_t)(end - bytes) - sizeof(len)) {
			(void)bad(tables, "a string is longer than what holds it");
			return -EBADMSG;
		}
		bytes += sizeof(len);
		err = add_text(tables, bytes, len);
	}
	return err;
}

/* A layout_text. An unknown number becomes the empty string: only a name is missing. */
static uint32_t text_of(void *context, uint32_t number)
{
	const struct duet_tables *tables = context;

	return number < tables->texts.len ? tables->texts.items[number] : 0;
}

/* ---- rows: each function returns the index in the profile, or UINT32_MAX; no cause: out of memory ---- */

union row {
	struct profile_event event;
	struct frame frame;
	struct profile_owner owner;
	struct layout_thread thread;
	struct layout_node node;
	struct profile_sample sample;
	struct profile_loss loss;
	struct profile_fact fact;
	struct profile_note note;
	struct profile_usage usage;
	struct profile_host host;
	struct layout_times times;
};

/* Weights in a unit of a newer duet are shown as counts. */
static uint32_t add_event(struct duet_tables *tables, const union row *row)
{
	const struct profile_event *event = &row->event;
	const char *name = intern_text(&tables->profile->strings, event->name);
	bool is_known = (uint32_t)event->unit < PROFILE_UNIT_MAX;

	if (tables->events.len >= PROFILE_EVENTS_MAX || tables->profile->events.len >= PROFILE_EVENTS_MAX)
		return bad(tables, "it has too many events");
	return profile_event(tables->profile, name, is_known ? event->unit : PROFILE_COUNT, event->interval);
}

/* A frame of a newer duet's kind is shown by its name. */
static uint32_t add_frame(struct duet_tables *tables, const union row *row)
{
	struct frame frame = row->frame;

	if ((uint32_t)frame.kind >= FRAME_KIND_MAX)
		frame.kind = FRAME_NATIVE;
	return profile_frame(tables->profile, &frame);
}

static uint32_t add_owner(struct duet_tables *tables, const union row *row)
{
	return profile_owner(tables->profile, &row->owner);
}

static uint32_t add_thread(struct duet_tables *tables, const union row *row)
{
	struct profile_thread thread = row->thread.thread;

	if (thread.owner >= tables->owners.len)
		return bad(tables, "a thread's owner is not there");
	thread.owner = tables->owners.items[thread.owner];
	return profile_thread_row(tables->profile, thread, row->thread.has_java_id ? &row->thread.java_id : NULL);
}

static uint32_t add_node(struct duet_tables *tables, const union row *row)
{
	uint32_t above = row->node.up, frame = row->node.frame, parent, node;

	if (!above || above > tables->nodes.len)
		return bad(tables, "a frame's caller is not there");
	if (frame >= tables->frames.len)
		return bad(tables, "a stack's frame is not there");
	parent = tables->nodes.items[tables->nodes.len - above];
	if (tables->depths.items[parent] >= LAYOUT_DEPTH_MAX)
		return bad(tables, "a stack is too deep");
	node = profile_child(tables->profile, parent, tables->frames.items[frame]);
	if (node == tables->depths.len && vec_push(&tables->depths, tables->depths.items[parent] + 1) < 0)
		return UINT32_MAX;
	return node;
}

static uint32_t add_sample(struct duet_tables *tables, const union row *row)
{
	struct profile_sample sample = row->sample;
	int err;

	if (sample.event >= tables->events.len || sample.thread >= tables->threads.len ||
	    sample.node >= tables->nodes.len || !sample.count)
		return bad(tables, "a sample's event, thread or stack is not there");
	sample.event = tables->events.items[sample.event];
	sample.thread = tables->threads.items[sample.thread];
	sample.node = tables->nodes.items[sample.node];
	sample.time_ns += tables->times.start_realtime_ns;
	err = profile_add(tables->profile, &sample);
	return err == -EOVERFLOW ? bad(tables, "the values of the samples are too large") : err ? UINT32_MAX : 0;
}

static uint32_t add_loss(struct duet_tables *tables, const union row *row)
{
	if (tables->profile->losses.len >= PROFILE_FACTS_MAX)
		return 0;
	return vec_push(&tables->profile->losses, row->loss) < 0 ? UINT32_MAX : 0;
}

static uint32_t add_fact(struct duet_tables *tables, const union row *row)
{
	if (tables->profile->facts.len >= PROFILE_FACTS_MAX)
		return 0;
	return vec_push(&tables->profile->facts, row->fact) < 0 ? UINT32_MAX : 0;
}

/* Notes of a newer duet's kind are left out. */
static uint32_t add_note(struct duet_tables *tables, const union row *row)
{
	struct profile_note note = row->note;

	if (note.kind >= PROFILE_NOTE_KINDS || tables->profile->notes.len >= PROFILE_NOTES_MAX)
		return 0;
	note.time_ns += tables->times.start_realtime_ns;
	return vec_push(&tables->profile->notes, note) < 0 ? UINT32_MAX : 0;
}

static uint32_t add_usage(struct duet_tables *tables, const union row *row)
{
	struct profile_usage usage = row->usage;

	usage.time_ns += tables->times.start_realtime_ns;
	return profile_add_usage(tables->profile, &usage) == -ENOMEM ? UINT32_MAX : 0;
}

static double percent(double value)
{
	return value >= 0 && value <= 100 ? value : 0;
}

static uint32_t set_host(struct duet_tables *tables, const union row *row)
{
	struct profile_host *host = &tables->profile->host;

	*host = row->host;
	host->cpu_percent = percent(host->cpu_percent);
	host->memory_percent = percent(host->memory_percent);
	return 0;
}

static uint32_t set_times(struct duet_tables *tables, const union row *row)
{
	tables->times = row->times;
	return 0;
}

/* ---- sections ---- */

static const struct kind {
	uint32_t (*add)(struct duet_tables *tables, const union row *row);
	size_t numbers; /* offset of its numbers in struct duet_tables; 0 for rows that nothing refers to */
} kinds[LAYOUT_TYPES] = {
	[LAYOUT_TIMES] = {set_times, 0},
	[LAYOUT_HOST] = {set_host, 0},
	[LAYOUT_EVENTS] = {add_event, offsetof(struct duet_tables, events)},
	[LAYOUT_FRAMES] = {add_frame, offsetof(struct duet_tables, frames)},
	[LAYOUT_OWNERS] = {add_owner, offsetof(struct duet_tables, owners)},
	[LAYOUT_THREADS] = {add_thread, offsetof(struct duet_tables, threads)},
	[LAYOUT_NODES] = {add_node, offsetof(struct duet_tables, nodes)},
	[LAYOUT_SAMPLES] = {add_sample, 0},
	[LAYOUT_LOSSES] = {add_loss, 0},
	[LAYOUT_FACTS] = {add_fact, 0},
	[LAYOUT_NOTES] = {add_note, 0},
	[LAYOUT_USAGES] = {add_usage, 0},
};

static int add_row(struct duet_tables *tables, const struct kind *kind, const union row *row)
{
	struct duet_numbers *numbers = (struct duet_numbers *)((char *)tables + kind->numbers);
	int err = count_row(tables, kind->add == add_sample ? 1 : TABLE_ROW);
	uint32_t index = err ? 0 : kind->add(tables, row);

	if (err)
		return err;
	if (index == UINT32_MAX)
		return tables->why.len ? -EBADMSG : -ENOMEM;
	return kind->numbers ? vec_push(numbers, index) : 0;
}

/*
 * Adds the rows of a section, whose uncompressed data are `bytes`. Skips a section of unknown type. Returns 0, or
 * -errno with the cause in tables->why.
 */
static int duet_tables_add(struct duet_tables *tables, const struct layout_section *section, const unsigned char *bytes)
{
	const struct kind *kind = &kinds[section->type < LAYOUT_TYPES ? section->type : 0];
	const unsigned char *end = bytes + section->raw_bytes;
	union row row;
	int err = 0;

	if (section->type == LAYOUT_TEXTS)
		return add_texts(tables, section, bytes);
	if (section->type == LAYOUT_LOSSES)
		vec_clear(&tables->profile->losses);
	if (section->type == LAYOUT_FACTS)
		vec_clear(&tables->profile->facts);
	for (; !err && kind->add && bytes < end; bytes += section->row_bytes) {
		layout_get(section->type, bytes, section->row_bytes, text_of, tables, &row);
		err = add_row(tables, kind, &row);
	}
	return err;
}

/* Call after the last section: sets the profile's times. */
static void duet_tables_finish(struct duet_tables *tables)
{
	struct profile *profile = tables->profile;
	const struct layout_times *times = &tables->times;

	profile->start_realtime_ns = profile->start_ns = times->start_realtime_ns;
	profile->end_ns = profile->start_ns + times->length_ns;
	profile->processes =
		times->processes <= PROFILE_NEVER ? (enum profile_processes)times->processes : PROFILE_IF_SEVERAL;
	profile->is_private = times->is_private != 0;
}

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
	if (section->coding != LAYOUT_DEFLATE || uncompress(columns, &len, stored, section->stored_bytes) != Z_OK ||
	    len != section->raw_bytes)
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

static int read_section(struct duet_file *file, const unsigned char **at, const unsigned char *end)
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
	return err ? err : duet_tables_add(&file->tables, &section, bytes);
}

static int read_sections(struct duet_file *file, struct buf *why)
{
	const unsigned char *at = (const unsigned char *)file->body.data, *end = at + file->body.len;
	int err = file->chunk.part ? 0 : duet_tables_anew(&file->tables);

	for (uint32_t i = 0; !err && i < file->chunk.sections; i++)
		err = read_section(file, &at, end);
	if (err < 0 && err != -ENOMEM)
		buf_printf(why, "the chunk at byte %" PRIu64 " is invalid%s%s", file->at,
			   file->tables.why.len ? ": " : "", file->tables.why.data);
	return err;
}

/* A row that was written before its program was known gets what the next row of the same program has. */
static void complete_owners(struct profile *profile)
{
	struct map next = {0};

	for (size_t i = profile->owners.len; i-- > 1;) {
		struct profile_owner *owner = &profile->owners.items[i];
		uint64_t key = hash_u64(owner->start_ticks ^ (uint64_t)owner->pid << 32), later;

		if (map_get(&next, key, &later))
			profile_complete_owner(owner, &profile->owners.items[later]);
		(void)map_put(&next, key, i); /* out of memory: it stays as it is */
	}
	map_release(&next);
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
	buf_clear(&file->body);
	err = reader_append(file->source, (size_t)chunk->body_bytes, &file->body);
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
		return buf_explain(why, -ENODATA, "it ends within its header");
	if (start.version != LAYOUT_VERSION)
		return buf_explain(why, -EPROTONOSUPPORT,
				  "it is of version %u, this duet reads version %d: use a newer duet", start.version,
				  LAYOUT_VERSION);
	if (start.bytes < sizeof(start) || start.bytes > sizeof(rest))
		return buf_explain(why, -EBADMSG, "its header is damaged");
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
		return buf_explain(why, -ENODATA,
				  file->left_out ? "its first chunk is damaged"
						 : "it ends before the end of its first chunk");
	duet_tables_finish(&file->tables);
	complete_owners(file->tables.profile);
	report_missing(file);
	return 0;
}

static int duet_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct duet_file file = {
		.source = source,
		.tables = {.profile = profile, .why = BUF_NONE},
		.body = BUF_NONE,
		.rows = BUF_NONE,
		.columns = BUF_NONE,
	};
	int err = read_file(&file, why);

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
