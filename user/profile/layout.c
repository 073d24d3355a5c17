/* SPDX-License-Identifier: MIT */
#include "profile/layout.h"

#include <string.h>

#define ROWS_AT_ONCE 256

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian");

/* clang-format off */
#define NUMBER(type, name) {offsetof(struct type, name), sizeof(((struct type *)0)->name), false}
#define TEXT(type, name) {offsetof(struct type, name), sizeof(((struct type *)0)->name), true}

static const struct layout_field times_fields[] = {
	NUMBER(layout_times, start_realtime_ns), NUMBER(layout_times, length_ns), NUMBER(layout_times, processes),
	NUMBER(layout_times, is_private), {0},
};

static const struct layout_field host_fields[] = {
	TEXT(profile_host, version), TEXT(profile_host, name), TEXT(profile_host, kernel_release),
	TEXT(profile_host, kernel_version), TEXT(profile_host, machine), TEXT(profile_host, os_name),
	TEXT(profile_host, os_release), TEXT(profile_host, os_codename), TEXT(profile_host, cpu_model),
	TEXT(profile_host, cpu_flags), TEXT(profile_host, cloud), TEXT(profile_host, cloud_region),
	TEXT(profile_host, cloud_zone), TEXT(profile_host, cloud_type), NUMBER(profile_host, processors),
	NUMBER(profile_host, loader), NUMBER(profile_host, memory_bytes), NUMBER(profile_host, spawned_realtime_ns),
	NUMBER(profile_host, spawned_boot_ns), NUMBER(profile_host, window_ns), NUMBER(profile_host, cpu_percent),
	NUMBER(profile_host, memory_percent), NUMBER(profile_host, usages_ns), {0},
};

static const struct layout_field event_fields[] = {
	TEXT(profile_event, name), NUMBER(profile_event, unit), NUMBER(profile_event, interval), {0},
};

static const struct layout_field frame_fields[] = {
	NUMBER(frame, kind), TEXT(frame, name), TEXT(frame, class_name), TEXT(frame, signature), TEXT(frame, module),
	NUMBER(frame, line), NUMBER(frame, bci), {0},
};

static const struct layout_field owner_fields[] = {
	NUMBER(profile_owner, start_ticks), NUMBER(profile_owner, pid), NUMBER(profile_owner, ns_pid),
	TEXT(profile_owner, executable), TEXT(profile_owner, executed_as), TEXT(profile_owner, runtime),
	TEXT(profile_owner, libjvm), TEXT(profile_owner, vm_flags), TEXT(profile_owner, application),
	TEXT(profile_owner, cgroup), TEXT(profile_owner, container), TEXT(profile_owner, container_kind),
	TEXT(profile_owner, container_id), TEXT(profile_owner, container_name), TEXT(profile_owner, pod),
	TEXT(profile_owner, pod_namespace), TEXT(profile_owner, pod_uid), TEXT(profile_owner, service),
	TEXT(profile_owner, attributes), {0},
};

static const struct layout_field thread_fields[] = {
	NUMBER(layout_thread, thread.pid), NUMBER(layout_thread, thread.tid), TEXT(layout_thread, thread.name),
	TEXT(layout_thread, thread.process), NUMBER(layout_thread, thread.owner), NUMBER(layout_thread, has_java_id),
	NUMBER(layout_thread, java_id), {0},
};

static const struct layout_field node_fields[] = {
	NUMBER(layout_node, up), NUMBER(layout_node, frame), {0},
};

/* time_ns is relative to the start of the recording. */
static const struct layout_field sample_fields[] = {
	NUMBER(profile_sample, time_ns), NUMBER(profile_sample, weight), NUMBER(profile_sample, thread),
	NUMBER(profile_sample, node), NUMBER(profile_sample, count), NUMBER(profile_sample, event),
	NUMBER(profile_sample, address), NUMBER(profile_sample, trace_high), NUMBER(profile_sample, trace_low),
	NUMBER(profile_sample, span), TEXT(profile_sample, attributes), {0},
};

static const struct layout_field loss_fields[] = {
	NUMBER(profile_loss, count), TEXT(profile_loss, text), {0},
};

static const struct layout_field fact_fields[] = {
	TEXT(profile_fact, key), TEXT(profile_fact, value), {0},
};

/* time_ns is relative to the start of the recording. */
static const struct layout_field note_fields[] = {
	NUMBER(profile_note, time_ns), NUMBER(profile_note, numbers[0]), NUMBER(profile_note, numbers[1]),
	NUMBER(profile_note, numbers[2]), NUMBER(profile_note, numbers[3]), NUMBER(profile_note, kind),
	NUMBER(profile_note, pid), TEXT(profile_note, texts[0]), TEXT(profile_note, texts[1]), {0},
};

/* time_ns is relative to the start of the recording. */
static const struct layout_field usage_fields[] = {
	NUMBER(profile_usage, time_ns), NUMBER(profile_usage, started_ms), NUMBER(profile_usage, user_ns),
	NUMBER(profile_usage, system_ns), NUMBER(profile_usage, load_ppm), NUMBER(profile_usage, size_bytes),
	NUMBER(profile_usage, resident_bytes), NUMBER(profile_usage, anonymous_bytes),
	NUMBER(profile_usage, file_bytes), NUMBER(profile_usage, shared_bytes), NUMBER(profile_usage, minor_faults),
	NUMBER(profile_usage, major_faults), NUMBER(profile_usage, read_bytes), NUMBER(profile_usage, written_bytes),
	NUMBER(profile_usage, pid), NUMBER(profile_usage, parent), NUMBER(profile_usage, uid),
	NUMBER(profile_usage, threads), NUMBER(profile_usage, state), TEXT(profile_usage, name),
	TEXT(profile_usage, command), {0},
};

/* clang-format on */

/* Sizes of rows as this version writes them. They may only grow, by fields at the end. */
const struct layout_rows layout_rows[LAYOUT_TYPES] = {
	[LAYOUT_TIMES] = {times_fields, 24, sizeof(struct layout_times)},
	[LAYOUT_HOST] = {host_fields, 120, sizeof(struct profile_host)},
	[LAYOUT_EVENTS] = {event_fields, 16, sizeof(struct profile_event)},
	[LAYOUT_FRAMES] = {frame_fields, 28, sizeof(struct frame)},
	[LAYOUT_OWNERS] = {owner_fields, 80, sizeof(struct profile_owner)},
	[LAYOUT_THREADS] = {thread_fields, 32, sizeof(struct layout_thread)},
	[LAYOUT_NODES] = {node_fields, 8, sizeof(struct layout_node)},
	[LAYOUT_SAMPLES] = {sample_fields, 68, sizeof(struct profile_sample)},
	[LAYOUT_LOSSES] = {loss_fields, 12, sizeof(struct profile_loss)},
	[LAYOUT_FACTS] = {fact_fields, 8, sizeof(struct profile_fact)},
	[LAYOUT_NOTES] = {note_fields, 56, sizeof(struct profile_note)},
	[LAYOUT_USAGES] = {usage_fields, 140, sizeof(struct profile_usage)},
};

void layout_put(enum layout_type type, const void *row, layout_text text, void *context, struct buf *out)
{
	for (const struct layout_field *field = layout_rows[type].fields; field->bytes; field++) {
		uint32_t number;

		if (!field->is_text) {
			buf_add(out, (const char *)row + field->offset, field->bytes);
			continue;
		}
		memcpy(&number, (const char *)row + field->offset, sizeof(number));
		number = text(context, number);
		buf_add(out, &number, sizeof(number));
	}
}

/* The usual sizes are constants here, so that the compiler makes a single move of each. */
static void copy_number(unsigned char *to, const unsigned char *from, size_t bytes)
{
	if (bytes == sizeof(uint32_t))
		memcpy(to, from, sizeof(uint32_t));
	else if (bytes == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else
		memcpy(to, from, bytes);
}

void layout_get(enum layout_type type, const unsigned char *bytes, size_t row_bytes, layout_text text, void *context,
		void *ret_row)
{
	const unsigned char *end = bytes + row_bytes;

	memset(ret_row, 0, layout_rows[type].struct_bytes);
	for (const struct layout_field *field = layout_rows[type].fields; field->bytes; field++) {
		unsigned char *to = (unsigned char *)ret_row + field->offset;
		uint32_t number;

		if (end - bytes < field->bytes)
			return;
		copy_number(to, bytes, field->bytes);
		if (field->is_text) {
			memcpy(&number, bytes, sizeof(number));
			number = text(context, number);
			memcpy(to, &number, sizeof(number));
		}
		bytes += field->bytes;
	}
}

/* Rows are read, and made again, in groups that fit the CPU's cache. */
void layout_to_columns(unsigned char *to, const unsigned char *from, size_t rows, size_t row_bytes)
{
	for (size_t first = 0; first < rows; first += ROWS_AT_ONCE) {
		size_t end = rows - first < ROWS_AT_ONCE ? rows : first + ROWS_AT_ONCE;

		for (size_t column = 0; column < row_bytes; column++)
			for (size_t row = first; row < end; row++)
				to[column * rows + row] = from[row * row_bytes + column];
	}
}

void layout_from_columns(unsigned char *to, const unsigned char *from, size_t rows, size_t row_bytes)
{
	for (size_t first = 0; first < rows; first += ROWS_AT_ONCE) {
		size_t end = rows - first < ROWS_AT_ONCE ? rows : first + ROWS_AT_ONCE;

		for (size_t column = 0; column < row_bytes; column++)
			for (size_t row = first; row < end; row++)
				to[row * row_bytes + column] = from[column * rows + row];
	}
}
