/* SPDX-License-Identifier: MIT */
/*
 * pprof files of duet, Go and others. The tables of the file may be in any order, so it is read several times: strings;
 * mappings, functions and value types; locations; samples. The format has no time of a sample: all samples are at the
 * start. Fields that are not in profile/pprof.proto are skipped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/attributes.h"
#include "profile/timeline.h"
#include "readers/pprof_tables.h"
#include "readers/reader.h"

#define COMMENTS_MAX (4 * PROFILE_FACTS_MAX)

static bool ends_in_samples(const struct pprof_file *p, int64_t string)
{
	struct pprof_text text = pprof_text(p, string);

	return text.len >= 7 && !memcmp(text.bytes + text.len - 7, "samples", 7) &&
	       (text.len == 7 || text.bytes[text.len - 8] == '_');
}

/*
 * A value that counts samples and comes directly before another value belongs to the same event: samples/count and
 * cpu/nanoseconds.
 */
static bool counts_the_next(const struct pprof_file *p, size_t i)
{
	return i + 1 < p->values.len && pprof_is_text(p, p->values.items[i].unit, "count") &&
	       (ends_in_samples(p, p->values.items[i].type) || !pprof_is_text(p, p->values.items[i + 1].unit, "count"));
}

/* Returns the index of the value to show first, as go tool pprof does: that of the default type, or else the last. */
static size_t default_value(const struct pprof_file *p)
{
	struct pprof_text wanted = pprof_text(p, p->head.default_type);

	for (size_t i = 0; wanted.len && i < p->values.len; i++) {
		struct pprof_text type = pprof_text(p, p->values.items[i].type);

		if (type.len == wanted.len && !memcmp(type.bytes, wanted.bytes, type.len))
			return i + counts_the_next(p, i);
	}
	return p->values.len - 1;
}

/* The first event is that of the default type. */
static int make_events(struct pprof_file *p)
{
	if (!p->values.len)
		return pprof_refuse(p, "the file has no value types");
	if (pprof_event(p, &p->values.items[default_value(p)], 0) == UINT32_MAX)
		return -ENOMEM;
	for (size_t i = 0; i < p->values.len; i++) {
		bool has_counts = counts_the_next(p, i);
		struct pprof_value *value = &p->values.items[i + has_counts];

		value->is_weight = true;
		value->is_count = !has_counts && pprof_unit(p, value) == PROFILE_COUNT;
		value->event = pprof_event(p, value, 0);
		if (value->event == UINT32_MAX)
			return -ENOMEM;
		if (has_counts) {
			p->values.items[i].is_count = true;
			p->values.items[i].event = value->event;
			i++;
		}
	}
	return vec_reserve(&p->sums, p->profile->events.len);
}

struct labels {
	uint32_t thread, process, container; /* the profile's strings */
	uint64_t pid, tid, virtual_id;
	bool is_virtual;
	struct profile_sample context; /* trace and span alone */
	struct buf others; /* as attributes.h */
};

static void read_other(struct pprof_file *p, const Pprof__Label *label, struct labels *ret)
{
	struct pprof_text key = pprof_text(p, label->key), value = pprof_text(p, label->text);

	if (value.len && !pprof_text_is(key, PPROF_LABEL_TAG))
		attributes_add(&ret->others, key.bytes, key.len, value.bytes, value.len);
}

static void read_label(struct pprof_file *p, const Pprof__Label *label, struct labels *ret)
{
	struct pprof_text value = pprof_text(p, label->text);
	uint32_t text;
	uint64_t number = label->number > 0 ? (uint64_t)label->number : 0;

	/* there may be one for each sample, so they do not become strings of the profile */
	if (pprof_is_text(p, label->key, PPROF_LABEL_TRACE)) {
		(void)trace_id_parse(&ret->context, (const char *)value.bytes, value.len);
		return;
	}
	if (pprof_is_text(p, label->key, PPROF_LABEL_SPAN)) {
		(void)span_id_parse(&ret->context, (const char *)value.bytes, value.len);
		return;
	}
	text = pprof_intern(p, label->text);
	if (pprof_is_text(p, label->key, PPROF_LABEL_THREAD) || pprof_is_text(p, label->key, "thread_name"))
		ret->thread = text;
	else if (pprof_is_text(p, label->key, PPROF_LABEL_PROCESS) || pprof_is_text(p, label->key, "comm"))
		ret->process = text;
	else if (pprof_is_text(p, label->key, PPROF_LABEL_CONTAINER))
		ret->container = text;
	else if (pprof_is_text(p, label->key, PPROF_LABEL_PID))
		ret->pid = number;
	else if (pprof_is_text(p, label->key, PPROF_LABEL_TID))
		ret->tid = number;
	else if (pprof_is_text(p, label->key, PPROF_LABEL_VIRTUAL)) {
		ret->virtual_id = number;
		ret->is_virtual = true;
	} else {
		read_other(p, label, ret);
	}
}

/* Also sets the trace, the span and the attributes of *ret. */
static uint32_t find_thread(struct pprof_file *p, const Pprof__Sample *sample, struct profile_sample *ret)
{
	struct labels labels = {.others = BUF_NONE};
	struct profile_owner owner = {0};
	struct profile_thread row;

	for (size_t i = 0; i < sample->n_labels; i++)
		read_label(p, sample->labels[i], &labels);
	ret->trace_high = labels.context.trace_high;
	ret->trace_low = labels.context.trace_low;
	ret->span = labels.context.span;
	ret->attributes = intern_bytes(&p->profile->strings, labels.others.data, labels.others.len);
	buf_release(&labels.others);
	owner.pid = (uint32_t)labels.pid;
	owner.container = labels.container;
	row = (struct profile_thread){
		.pid = (uint32_t)labels.pid,
		.tid = (uint32_t)labels.tid,
		.name = labels.thread,
		.process = labels.process,
		.owner = owner.pid || owner.container ? profile_owner(p->profile, &owner) : 0,
	};
	return pprof_thread(p, row, labels.is_virtual ? &labels.virtual_id : NULL);
}

static int add_value(struct pprof_file *p, const struct pprof_value *value, int64_t number)
{
	struct pprof_sum *sum = &p->sums.items[value->event];

	if (number < 0)
		return pprof_refuse(p, "a sample has a negative value, as in the difference of two profiles");
	if ((uint64_t)number > PROFILE_COUNT_MAX / value->scale)
		return pprof_refuse(p, "the values of the samples are too large");
	if (value->is_count)
		sum->count += (uint64_t)number;
	if (value->is_weight)
		sum->weight += (uint64_t)number * value->scale;
	return 0;
}

/* Adds the samples of one event. */
static int add_sum(struct pprof_file *p, struct pprof_sum *sum, struct profile_sample sample)
{
	if (!sum->count && sum->weight)
		sum->count = 1;
	sample.weight = sum->weight;
	return reader_add(p->profile, sample, sum->count);
}

static int add_sample(struct pprof_file *p, const Pprof__Sample *message)
{
	struct profile_sample sample = {.time_ns = p->profile->start_ns};
	int err = pprof_stack(p, message->locations, message->n_locations, &sample.node);

	if (!err)
		err = pprof_has_room(p, p->samples++);
	if (err < 0)
		return err;
	if (message->n_values != p->values.len)
		return pprof_refuse(p, "a sample has %zu values of %zu", message->n_values, p->values.len);
	for (size_t i = 0; i < message->n_labels; i++)
		if (!pprof_has_strings(p, (int64_t[]){message->labels[i]->key, message->labels[i]->text}, 2))
			return pprof_refuse(p, "a label refers to a string that the file does not have");
	sample.thread = find_thread(p, message, &sample);
	p->sums.len = p->profile->events.len;
	memset(p->sums.items, 0, p->sums.len * sizeof(*p->sums.items));
	for (size_t i = 0; !err && i < p->values.len; i++)
		err = add_value(p, &p->values.items[i], message->values[i]);
	for (sample.event = 0; !err && sample.event < p->sums.len; sample.event++)
		err = add_sum(p, &p->sums.items[sample.event], sample);
	return err;
}

static int read_sample(struct pprof_file *p, const struct wire_field *field)
{
	PPROF_OWNED Pprof__Sample *sample = NULL;

	if (field->number != PPROF_SAMPLES)
		return 0;
	sample = pprof_unpack(p, field, &pprof__sample__descriptor);
	return sample ? add_sample(p, sample) : -EINVAL;
}

static int add_comment(struct pprof_file *p, int64_t string)
{
	const char *text = intern_text(&p->profile->strings, pprof_intern(p, string));
	const char *colon = strstr(text, ": ");
	BUF(key);

	if (p->comments++ == COMMENTS_MAX)
		return pprof_refuse(p, "the file has more than %d comments", COMMENTS_MAX);
	buf_add(&key, text, colon ? (size_t)(colon - text) : 0);
	if (!strcmp(key.data, PPROF_PROCESSES))
		p->profile->processes = strcmp(colon + 2, "always") ? PROFILE_NEVER : PROFILE_ALWAYS;
	else if (!strncmp(key.data, PPROF_LOST, strlen(PPROF_LOST)))
		profile_add_loss(p->profile, strtoull(key.data + strlen(PPROF_LOST), NULL, 10), colon + 2);
	else
		profile_add_fact(p->profile, colon ? key.data : "comment", "%s", colon ? colon + 2 : text);
	return 0;
}

static int read_comment(struct pprof_file *p, const struct wire_field *field)
{
	struct wire packed = {.bytes = field->bytes, .len = field->len};
	uint64_t string;
	int got;

	if (field->number != PPROF_COMMENTS)
		return 0;
	if (field->type == WIRE_VARINT)
		return add_comment(p, (int64_t)field->value);
	if (field->type != WIRE_BYTES)
		return -EINVAL;
	while ((got = wire_varint(&packed, &string)) > 0) {
		int err = add_comment(p, (int64_t)string);

		if (err < 0)
			return err;
	}
	return got;
}

static void set_times(struct pprof_file *p)
{
	uint64_t start = p->head.time_ns > 0 ? (uint64_t)p->head.time_ns : 0;
	uint64_t length = p->head.duration_ns > 0 ? (uint64_t)p->head.duration_ns : 0;

	p->profile->start_ns = p->profile->start_realtime_ns = start;
	p->profile->end_ns = start + length;
	if (p->profile->events.len && p->head.period > 0)
		p->profile->events.items[0].interval = (uint64_t)p->head.period;
}

static int read_contents(struct pprof_file *p)
{
	int err = pprof_read_tables(p);

	if (!err)
		err = make_events(p);
	if (!err)
		set_times(p);
	if (!err)
		err = pprof_each(p, read_sample);
	return err ? err : pprof_each(p, read_comment);
}

static int pprof_read(struct profile *profile, struct reader_source *source, struct buf *why)
{
	struct pprof_file p = {.profile = profile, .why = why};
	BUF(contents);
	int err = reader_contents(source, PPROF_CONTENTS_MAX, &contents, why);

	p.file = (struct wire){.bytes = (const unsigned char *)contents.data, .len = contents.len};
	p.rows_max = PPROF_ROWS_FREE + reader_stored_bytes(source);
	if (!err)
		err = read_contents(&p);
	pprof_file_release(&p);
	return err;
}

#define LAST_FIELD 20 /* later versions may have a few more fields */

static bool is_field_of_pprof(const struct wire_field *field)
{
	if (field->number <= PPROF_STRINGS || field->number == PPROF_PERIOD_TYPE)
		return field->type == WIRE_BYTES;
	return field->number <= LAST_FIELD &&
	       (field->number == PPROF_COMMENTS || field->number > PPROF_DEFAULT_TYPE || field->type == WIRE_VARINT);
}

/*
 * Decided by all fields that begin in the first bytes: each has a number and a type of the format. By chance, few files
 * begin with two such fields; the next may be a stack that is longer.
 */
static bool pprof_claims(const unsigned char *start, size_t len)
{
	struct wire wire = {.bytes = start, .len = len};
	struct wire_field field;
	size_t fields = 0;

	if (reader_is_text(start, len))
		return false;
	for (; wire_next(&wire, &field) > 0; fields++)
		if (!is_field_of_pprof(&field))
			return false;
	return fields > 1;
}

const struct reader reader_pprof = {
	.name = "pprof",
	.help = "of duet, Go and others, compressed or not",
	.claims = pprof_claims,
	.read = pprof_read,
};
