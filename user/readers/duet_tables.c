/* SPDX-License-Identifier: MIT */
#include "readers/duet_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX (1ull << 30) /* of all strings */
#define ROWS_FREE (1u << 20) /* of each table, however short the file */
#define ROWS_PER_BYTE 4

void duet_tables_init(struct duet_tables *tables, struct profile *profile)
{
	*tables = (struct duet_tables){.profile = profile};
}

void duet_tables_release(struct duet_tables *tables)
{
	vec_release(&tables->texts);
	vec_release(&tables->events);
	vec_release(&tables->frames);
	vec_release(&tables->owners);
	vec_release(&tables->threads);
	vec_release(&tables->nodes);
	vec_release(&tables->depths);
}

/* The empty string, the unknown owner and the root are not stored. */
int duet_tables_anew(struct duet_tables *tables)
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

/* ---- strings ---- */

static int add_text(struct duet_tables *tables, const unsigned char *text, uint32_t len, struct buf *why)
{
	tables->text_bytes += len;
	if (tables->texts.len >= LAYOUT_TEXTS_MAX || tables->text_bytes > TEXT_BYTES_MAX) {
		buf_printf(why, "it has too many strings");
		return -EFBIG;
	}
	return vec_push(&tables->texts, intern_bytes(&tables->profile->strings, (const char *)text, len));
}

static int add_texts(struct duet_tables *tables, const struct layout_section *section, const unsigned char *bytes,
		     struct buf *why)
{
	const unsigned char *end = bytes + section->raw_bytes;
	int err = 0;

	for (uint32_t len; !err && bytes < end; bytes += len) {
		if ((size_t)(end - bytes) < sizeof(len))
			len = UINT32_MAX;
		else
			memcpy(&len, bytes, sizeof(len));
		if (len > LAYOUT_TEXT_MAX || len > (size_t)(end - bytes) - sizeof(len)) {
			buf_printf(why, "a string is longer than what holds it");
			return -EBADMSG;
		}
		bytes += sizeof(len);
		err = add_text(tables, bytes, len, why);
	}
	return err;
}

/* A layout_text. An unknown number becomes the empty string: only a name is missing. */
static uint32_t text_of(void *context, uint32_t number)
{
	const struct duet_tables *tables = context;

	return number < tables->texts.len ? tables->texts.items[number] : 0;
}

/* ---- rows: each function returns the index in the profile, or UINT32_MAX; `why` is empty when out of memory ---- */

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

static uint32_t bad(struct buf *why, const char *what)
{
	buf_printf(why, "%s", what);
	return UINT32_MAX;
}

/* Weights in a unit of a newer duet are shown as counts. */
static uint32_t add_event(struct duet_tables *tables, const union row *row, struct buf *why)
{
	const struct profile_event *event = &row->event;
	const char *name = intern_text(&tables->profile->strings, event->name);
	bool is_known = (uint32_t)event->unit < PROFILE_UNIT_MAX;

	if (tables->profile->events.len >= PROFILE_EVENTS_MAX)
		return bad(why, "it has too many events");
	return profile_event(tables->profile, name, is_known ? event->unit : PROFILE_COUNT, event->interval);
}

/* A frame of a newer duet's kind is shown by its name. */
static uint32_t add_frame(struct duet_tables *tables, const union row *row, struct buf *why)
{
	struct frame frame = row->frame;

	(void)why;
	if ((uint32_t)frame.kind >= FRAME_KIND_MAX)
		frame.kind = FRAME_NATIVE;
	return profile_frame(tables->profile, &frame);
}

static uint32_t add_owner(struct duet_tables *tables, const union row *row, struct buf *why)
{
	(void)why;
	return profile_owner(tables->profile, &row->owner);
}

static uint32_t add_thread(struct duet_tables *tables, const union row *row, struct buf *why)
{
	const struct profile_thread *thread = &row->thread.thread;
	const struct intern *strings = &tables->profile->strings;
	const char *name = intern_text(strings, thread->name), *process = intern_text(strings, thread->process);

	if (thread->owner >= tables->owners.len)
		return bad(why, "a thread's owner is not there");
	if (row->thread.has_virtual_id)
		return profile_virtual_thread(tables->profile, thread->pid, row->thread.virtual_id, name, process,
					      tables->owners.items[thread->owner]);
	return profile_thread(tables->profile, thread->pid, thread->tid, name, process,
			      tables->owners.items[thread->owner]);
}

static uint32_t add_node(struct duet_tables *tables, const union row *row, struct buf *why)
{
	uint32_t above = row->node.up, frame = row->node.frame, parent, node;

	if (!above || above > tables->nodes.len)
		return bad(why, "a frame's caller is not there");
	if (frame >= tables->frames.len)
		return bad(why, "a stack's frame is not there");
	parent = tables->nodes.items[tables->nodes.len - above];
	if (tables->depths.items[parent] >= LAYOUT_DEPTH_MAX)
		return bad(why, "a stack is too deep");
	node = profile_child(tables->profile, parent, tables->frames.items[frame]);
	if (node == tables->depths.len && vec_push(&tables->depths, tables->depths.items[parent] + 1) < 0)
		return UINT32_MAX;
	return node;
}

static uint32_t add_sample(struct duet_tables *tables, const union row *row, struct buf *why)
{
	struct profile_sample sample = row->sample;

	if (sample.event >= tables->events.len || sample.thread >= tables->threads.len ||
	    sample.node >= tables->nodes.len || !sample.count)
		return bad(why, "a sample's event, thread or stack is not there");
	sample.event = tables->events.items[sample.event];
	sample.thread = tables->threads.items[sample.thread];
	sample.node = tables->nodes.items[sample.node];
	sample.time_ns += tables->times.start_realtime_ns;
	tables->samples++;
	return profile_add(tables->profile, &sample) < 0 ? UINT32_MAX : 0;
}

static uint32_t add_loss(struct duet_tables *tables, const union row *row, struct buf *why)
{
	(void)why;
	if (tables->profile->losses.len >= PROFILE_FACTS_MAX)
		return 0;
	return vec_push(&tables->profile->losses, row->loss) < 0 ? UINT32_MAX : 0;
}

static uint32_t add_fact(struct duet_tables *tables, const union row *row, struct buf *why)
{
	(void)why;
	if (tables->profile->facts.len >= PROFILE_FACTS_MAX)
		return 0;
	return vec_push(&tables->profile->facts, row->fact) < 0 ? UINT32_MAX : 0;
}

/* Notes of a newer duet's kind are left out. */
static uint32_t add_note(struct duet_tables *tables, const union row *row, struct buf *why)
{
	struct profile_note note = row->note;

	(void)why;
	if (note.kind >= PROFILE_NOTE_KINDS || tables->profile->notes.len >= PROFILE_NOTES_MAX)
		return 0;
	note.time_ns += tables->times.start_realtime_ns;
	return vec_push(&tables->profile->notes, note) < 0 ? UINT32_MAX : 0;
}

static uint32_t add_usage(struct duet_tables *tables, const union row *row, struct buf *why)
{
	struct profile_usage usage = row->usage;

	(void)why;
	usage.time_ns += tables->times.start_realtime_ns;
	return profile_add_usage(tables->profile, &usage) == -ENOMEM ? UINT32_MAX : 0;
}

static double percent(double value)
{
	return value >= 0 && value <= 100 ? value : 0;
}

static uint32_t set_host(struct duet_tables *tables, const union row *row, struct buf *why)
{
	struct profile_host *host = &tables->profile->host;

	(void)why;
	*host = row->host;
	host->cpu_percent = percent(host->cpu_percent);
	host->memory_percent = percent(host->memory_percent);
	return 0;
}

static uint32_t set_times(struct duet_tables *tables, const union row *row, struct buf *why)
{
	(void)why;
	tables->times = row->times;
	return 0;
}

/* ---- sections ---- */

static const struct kind {
	uint32_t (*add)(struct duet_tables *tables, const union row *row, struct buf *why);
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

static int add_row(struct duet_tables *tables, const struct kind *kind, const union row *row, struct buf *why)
{
	struct duet_numbers *numbers = (struct duet_numbers *)((char *)tables + kind->numbers);
	uint32_t index = kind->add(tables, row, why);

	if (index == UINT32_MAX)
		return why->len ? -EBADMSG : -ENOMEM;
	return kind->numbers ? vec_push(numbers, index) : 0;
}

/*
 * Returns true if the file would make us use too much memory, or too much room of the timeline: rows that are all alike
 * take nearly no bytes in the file. Rows of recordings take at least one.
 */
static bool has_too_many(const struct duet_tables *tables)
{
	const struct profile *profile = tables->profile;
	uint64_t most = ROWS_FREE + ROWS_PER_BYTE * tables->file_bytes, rows_most;

	rows_most = most < LAYOUT_ROWS_MAX ? most : LAYOUT_ROWS_MAX;
	/* Samples are on disk, and may be as regular as a clock. */
	return tables->nodes.len > rows_most || tables->frames.len > rows_most || tables->threads.len > rows_most ||
	       tables->owners.len > rows_most || profile->nodes.len > rows_most || profile->frames.len > rows_most ||
	       profile->threads.len > rows_most || profile->owners.len > rows_most ||
	       tables->samples > 2 * most;
}

int duet_tables_add(struct duet_tables *tables, const struct layout_section *section, const unsigned char *bytes,
		    struct buf *why)
{
	const struct kind *kind = &kinds[section->type < LAYOUT_TYPES ? section->type : 0];
	const unsigned char *end = bytes + section->raw_bytes;
	union row row;
	int err = 0;

	if (section->type == LAYOUT_TEXTS)
		return add_texts(tables, section, bytes, why);
	if (section->type == LAYOUT_LOSSES)
		vec_clear(&tables->profile->losses);
	if (section->type == LAYOUT_FACTS)
		vec_clear(&tables->profile->facts);
	for (; !err && kind->add && bytes < end; bytes += section->row_bytes) {
		layout_get(section->type, bytes, section->row_bytes, text_of, tables, &row);
		err = add_row(tables, kind, &row, why);
	}
	if (err || !has_too_many(tables))
		return err;
	buf_printf(why, "it has too many rows");
	return -EFBIG;
}

void duet_tables_finish(struct duet_tables *tables)
{
	struct profile *profile = tables->profile;
	const struct layout_times *times = &tables->times;

	profile->start_realtime_ns = profile->start_ns = times->start_realtime_ns;
	profile->end_ns = profile->start_ns + times->length_ns;
	profile->processes = times->processes <= PROFILE_NEVER ? (enum profile_processes)times->processes :
								  PROFILE_IF_SEVERAL;
	profile->is_private = times->is_private != 0;
}
