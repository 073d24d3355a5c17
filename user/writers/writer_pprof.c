/* SPDX-License-Identifier: MIT */
/*
 * The format pprof: one compressed protobuf message, see profile/pprof.proto. Its parts may have any order, so each is
 * written as soon as it is known. Each frame of the profile becomes a location of the file. Threads, processes and
 * containers become labels of samples. They are not frames of the stacks, but -I and -X can choose by them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/varint.h"
#include "profile/attributes.h"
#include "profile/pprof.h"
#include "profile/timeline.h"
#include "writers/gzip.h"
#include "writers/shared/code.h"
#include "writers/shared/path.h"
#include "writers/shared/spans.h"
#include "writers/writer.h"

#define ROWS_MAX 262144 /* stacks of threads whose samples are summed before they are written */
#define LABELS_MAX (9 + 2 * ATTRIBUTES_MAX)

/*
 * The samples of one thread, stack and span; of the sample only these fields count. Their values are 2 * events in
 * `values`: samples and weight of each event.
 */
struct row {
	struct profile_sample of;
	const char *tag; /* see spans_tag() */
};

struct pprof {
	const struct profile *profile;
	struct path_maker path;
	struct spans spans;
	struct gzip gzip;
	struct buf packed, text;
	struct intern strings; /* id = index in the file */
	size_t strings_written;
	struct map kept_strings; /* place of a text that stays where it is -> id */
	struct intern mappings, functions; /* the text of each row; id = id in the file */
	uint32_t *frame_locations; /* by index of the frame; 0 = not written yet */
	struct map mark_locations; /* by label */
	uint64_t location_count;
	struct vec(struct row) rows;
	struct vec(int64_t) values;
	struct map row_ids; /* row_key() -> index in rows */
	struct vec(uint64_t) stack;
	int err;
};

/* Adds a field of the whole file, whose bytes are in p->packed. */
static void put_packed(struct pprof *p, enum pprof_field field)
{
	unsigned char head[1 + VARINT_BYTES] = {(unsigned char)(field << 3 | 2)};

	gzip_add(&p->gzip, head, 1 + varint_put(head + 1, p->packed.len));
	gzip_add(&p->gzip, p->packed.data, p->packed.len);
}

/* Writes a field of the whole file; 0: those fields that are set in `message`, which is a whole file. */
static void put_message(struct pprof *p, unsigned int field, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);

	buf_clear(&p->packed);
	if (!buf_reserve(&p->packed, len)) {
		p->err = -ENOMEM;
		return;
	}
	p->packed.len = protobuf_c_message_pack(message, (uint8_t *)p->packed.data);
	if (field)
		put_packed(p, field);
	else
		gzip_add(&p->gzip, p->packed.data, p->packed.len);
}

static void put_strings(struct pprof *p)
{
	for (; p->strings_written < p->strings.strings.len; p->strings_written++) {
		buf_clear(&p->packed);
		buf_add_str(&p->packed, intern_text(&p->strings, (uint32_t)p->strings_written));
		put_packed(p, PPROF_STRINGS);
	}
}

/* Strings of messages must be UTF-8, so texts from outside are cleaned. */
static int64_t string_of(struct pprof *p, const char *text)
{
	uint32_t id;

	buf_clear(&p->packed);
	text_add_line(&p->packed, text);
	id = intern_str(&p->strings, p->packed.data);
	if (p->packed.failed || (!id && p->packed.len))
		p->err = -ENOMEM;
	return id;
}

static uint64_t mapping_of(struct pprof *p, const struct frame *frame)
{
	size_t known = p->mappings.strings.len;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT;
	const char *name;

	buf_clear(&p->text);
	code_file(p->profile, frame, &p->text);
	name = p->text.data;
	mapping.id = p->text.failed ? 0 : intern_str(&p->mappings, name);
	if (p->text.failed || (!mapping.id && *name))
		p->err = -ENOMEM;
	if (mapping.id < known)
		return mapping.id;
	mapping.file = string_of(p, name);
	mapping.build_id = string_of(p, code_build_id(p->profile, name));
	mapping.has_functions = mapping.has_files = mapping.has_lines = mapping.has_inlined = true;
	put_message(p, PPROF_MAPPINGS, &mapping.base);
	return mapping.id;
}

/* A function stands for all frames with the same texts. `frame` is NULL for a mark of the writer. */
static uint64_t function_of(struct pprof *p, const char *name, const struct frame *frame)
{
	bool has_file = frame && frame_kind_is_java(frame->kind);
	const char *file = has_file ? profile_text(p->profile, frame->module) : "";
	size_t known = p->functions.strings.len, system_name;
	Pprof__Function function = PPROF__FUNCTION__INIT;

	buf_clear(&p->text);
	buf_printf(&p->text, "%s\n%s\n", name, file);
	system_name = p->text.len;
	if (frame)
		code_name(p->profile, frame, &p->text);
	else
		buf_add_str(&p->text, name);
	function.id = p->text.failed ? 0 : intern_str(&p->functions, p->text.data);
	if (!function.id)
		p->err = -ENOMEM;
	if (function.id < known)
		return function.id;
	function.name = string_of(p, name);
	function.system_name = string_of(p, p->text.data + system_name);
	function.file = string_of(p, file);
	put_message(p, PPROF_FUNCTIONS, &function.base);
	return function.id;
}

static uint64_t put_location(struct pprof *p, const struct path_step *step)
{
	Pprof__Location location = PPROF__LOCATION__INIT;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;

	line.function = function_of(p, p->path.labels->items[step->label].text, step->frame);
	line.line = step->frame ? step->frame->line : 0;
	location.id = ++p->location_count;
	location.mapping = step->frame ? mapping_of(p, step->frame) : 0;
	location.n_lines = 1;
	location.lines = &lines;
	put_message(p, PPROF_LOCATIONS, &location.base);
	return location.id;
}

static uint64_t location_of(struct pprof *p, const struct path_step *step)
{
	uint32_t *known = step->frame ? &p->frame_locations[step->frame - p->profile->frames.items] : NULL;
	uint64_t id;

	if (known && *known)
		return *known;
	if (!known && map_get(&p->mark_locations, step->label, &id))
		return id;
	id = put_location(p, step);
	if (known)
		*known = (uint32_t)id;
	else if (map_put(&p->mark_locations, step->label, id) < 0)
		p->err = -ENOMEM;
	return id;
}

struct labels {
	Pprof__Label items[LABELS_MAX];
	size_t count;
};

/* The same for a text that stays where it is, such as the profile's: many samples have it, and it may be long. */
static int64_t kept_string_of(struct pprof *p, const char *text)
{
	uint64_t id;

	if (map_get(&p->kept_strings, (uintptr_t)text, &id))
		return (int64_t)id;
	id = (uint64_t)string_of(p, text);
	if (map_put(&p->kept_strings, (uintptr_t)text, id) < 0)
		p->err = -ENOMEM;
	return (int64_t)id;
}

/* Adds a label with a string, or with a number. */
static void add_label(struct pprof *p, struct labels *labels, const char *key, int64_t string, uint64_t number)
{
	Pprof__Label *label = &labels->items[labels->count++];

	pprof__label__init(label);
	label->key = kept_string_of(p, key);
	label->text = string;
	label->number = (int64_t)number;
}

/* Adds a label with a text of the profile, unless that is empty. */
static void add_text(struct pprof *p, struct labels *labels, const char *key, const char *text)
{
	(void)kept_string_of(p, key);
	if (*text)
		add_label(p, labels, key, kept_string_of(p, text), 0);
}

static void label_thread(struct pprof *p, struct labels *labels, uint32_t index)
{
	const struct profile *profile = p->profile;
	const struct profile_thread *thread = &profile->threads.items[index];
	uint32_t container = profile->owners.items[thread->owner].container;

	add_text(p, labels, PPROF_LABEL_CONTAINER, profile_text(profile, container));
	add_text(p, labels, PPROF_LABEL_PROCESS, profile_text(profile, thread->process));
	add_text(p, labels, PPROF_LABEL_THREAD, profile_text(profile, thread->name));
	if (thread->pid)
		add_label(p, labels, PPROF_LABEL_PID, 0, thread->pid);
	if (thread->tid == PROFILE_VIRTUAL)
		add_label(p, labels, PPROF_LABEL_VIRTUAL, 0, profile_virtual_id(profile, index));
	else if (thread->tid)
		add_label(p, labels, PPROF_LABEL_TID, 0, thread->tid);
}

/* What the program publishes, but for what it could fake, and for what `other` has. */
static void label_published(struct pprof *p, struct labels *labels, uint32_t text, const char *other)
{
	const char *at = profile_text(p->profile, text);
	struct attribute published, ours;
	BUF(key);
	BUF(value);

	for (int i = 0; i < ATTRIBUTES_MAX && attributes_next(&at, &published); i++) {
		Pprof__Label *label = &labels->items[labels->count];

		buf_clear(&key);
		buf_clear(&value);
		buf_add(&key, published.key, published.key_len);
		buf_add(&value, published.value, published.value_len);
		pprof__label__init(label);
		label->key = string_of(p, key.data);
		label->text = string_of(p, value.data);
		labels->count += key.len && value.len && !text_is_word(key.data, PPROF_LABELS) &&
				 !attributes_find(other, key.data, &ours);
	}
}

static void label_trace(struct pprof *p, struct labels *labels, const struct row *row)
{
	char trace[TRACE_ID_DIGITS + 1], span[SPAN_ID_DIGITS + 1];

	if (row->tag && *row->tag)
		add_text(p, labels, PPROF_LABEL_TAG, row->tag);
	if (!trace_is_known(&row->of))
		return;
	trace_id_text(&row->of, trace);
	span_id_text(&row->of, span);
	(void)kept_string_of(p, PPROF_LABEL_TRACE);
	add_label(p, labels, PPROF_LABEL_TRACE, string_of(p, trace), 0);
	(void)kept_string_of(p, PPROF_LABEL_SPAN);
	add_label(p, labels, PPROF_LABEL_SPAN, string_of(p, span), 0);
}

static size_t value_count(const struct pprof *p)
{
	return 2 * p->profile->events.len;
}

static void put_sample(struct pprof *p, size_t index)
{
	const struct row *row = &p->rows.items[index];
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	Pprof__Label *pointers[LABELS_MAX];
	uint32_t owner = p->profile->threads.items[row->of.thread].owner;
	struct labels labels = {.count = 0};
	int wanted = path_make(&p->path, row->of.thread, row->of.node);

	if (wanted < 0)
		p->err = wanted;
	if (wanted <= 0)
		return;
	vec_clear(&p->stack);
	for (size_t i = 0; i < p->path.depth; i++)
		if (vec_push(&p->stack, location_of(p, &p->path.steps.items[i])) < 0)
			p->err = -ENOMEM;
	sample.n_locations = p->stack.len;
	sample.locations = p->stack.items;
	sample.n_values = value_count(p);
	sample.values = p->values.items + index * value_count(p);
	label_thread(p, &labels, row->of.thread);
	label_published(p, &labels, row->of.attributes, "");
	label_published(p, &labels, p->profile->owners.items[owner].attributes,
			profile_text(p->profile, row->of.attributes));
	label_trace(p, &labels, row);
	sample.n_labels = labels.count;
	sample.labels = pointers;
	for (size_t i = 0; i < LABELS_MAX; i++)
		pointers[i] = &labels.items[i];
	put_message(p, PPROF_SAMPLES, &sample.base);
	put_strings(p);
}

static void put_samples(struct pprof *p)
{
	for (size_t i = 0; i < p->rows.len && !p->err; i++)
		put_sample(p, i);
	vec_clear(&p->rows);
	vec_clear(&p->values);
	map_release(&p->row_ids);
}

static uint64_t row_key(const struct row *row)
{
	const struct profile_sample *of = &row->of;
	const uint64_t key[] = {(uint64_t)of->thread << 32 | of->node, of->trace_high, of->trace_low, of->span,
				(uintptr_t)row->tag, of->attributes};

	return row->tag || of->attributes || trace_is_known(of) ? hash_bytes(key, sizeof(key), 0) : key[0];
}

/* Returns the index of a row like this one; UINT64_MAX: there is none yet, or it is hidden by one of equal key. */
static uint64_t find_row(const struct pprof *p, const struct row *row)
{
	const struct row *known;
	uint64_t index;

	if (!map_get(&p->row_ids, row_key(row), &index))
		return UINT64_MAX;
	known = &p->rows.items[index];
	return known->of.thread == row->of.thread && known->of.node == row->of.node && known->tag == row->tag &&
			       trace_is_same(&known->of, &row->of)
		       ? index
		       : UINT64_MAX;
}

/* Returns the index of a new row whose values are 0, or UINT64_MAX when out of memory. */
static uint64_t add_row(struct pprof *p, const struct row *row)
{
	size_t index = p->rows.len, end = p->values.len + value_count(p);

	if (vec_reserve(&p->values, end) < 0 || map_put(&p->row_ids, row_key(row), index) < 0 ||
	    vec_push(&p->rows, *row) < 0)
		return UINT64_MAX;
	memset(p->values.items + p->values.len, 0, value_count(p) * sizeof(*p->values.items));
	p->values.len = end;
	return index;
}

static int collect(void *context, const struct profile_sample *sample)
{
	struct pprof *p = context;
	const struct row row = {.of = *sample, .tag = spans_tag(&p->spans, sample)};
	uint64_t index;
	int64_t *values;

	if (p->rows.len >= ROWS_MAX)
		put_samples(p);
	if (p->err)
		return p->err;
	index = find_row(p, &row);
	if (index == UINT64_MAX)
		index = add_row(p, &row);
	if (index == UINT64_MAX)
		return p->err = -ENOMEM;
	values = p->values.items + index * value_count(p) + 2 * sample->event;
	values[0] += sample->count;
	values[1] += (int64_t)sample->weight;
	return 0;
}

/*
 * Value types like Go's: samples/count and cpu/nanoseconds. With several events, each has its own samples: cpu_samples.
 */
static void put_value_types(struct pprof *p)
{
	const struct profile *profile = p->profile;

	for (size_t i = 0; i < profile->events.len; i++) {
		const struct profile_event *event = &profile->events.items[i];
		Pprof__ValueType samples = PPROF__VALUE_TYPE__INIT, weight = PPROF__VALUE_TYPE__INIT;

		buf_clear(&p->text);
		if (profile->events.len > 1)
			buf_printf(&p->text, "%s_", profile_text(profile, event->name));
		buf_add_str(&p->text, "samples");
		samples.type = string_of(p, p->text.data);
		samples.unit = string_of(p, "count");
		weight.type = string_of(p, profile_text(profile, event->name));
		weight.unit = string_of(p, code_unit(event->unit));
		put_message(p, PPROF_VALUE_TYPES, &samples.base);
		put_message(p, PPROF_VALUE_TYPES, &weight.base);
	}
}

__attribute__((format(printf, 2, 3))) static void put_comment(struct pprof *p, const char *format, ...)
{
	Pprof__Profile file = PPROF__PROFILE__INIT;
	int64_t comment;
	va_list args;

	buf_clear(&p->text);
	va_start(args, format);
	buf_vprintf(&p->text, format, args);
	va_end(args);
	comment = string_of(p, p->text.data);
	file.n_comments = 1;
	file.comments = &comment;
	put_message(p, 0, &file.base);
}

static void put_comments(struct pprof *p)
{
	const struct profile *profile = p->profile;

	if (profile->processes != PROFILE_IF_SEVERAL)
		put_comment(p, "%s: %s", PPROF_PROCESSES, profile->processes == PROFILE_ALWAYS ? "always" : "never");
	for (size_t i = 0; i < profile->facts.len; i++)
		put_comment(p, "%s: %s", profile_text(profile, profile->facts.items[i].key),
			    profile_text(profile, profile->facts.items[i].value));
	for (size_t i = 0; i < profile->losses.len; i++)
		put_comment(p, PPROF_LOST "%llu: %s", (unsigned long long)profile->losses.items[i].count,
			    profile_text(profile, profile->losses.items[i].text));
}

static void put_head(struct pprof *p)
{
	const struct profile *profile = p->profile;
	Pprof__Profile file = PPROF__PROFILE__INIT;
	Pprof__ValueType period = PPROF__VALUE_TYPE__INIT;

	put_value_types(p);
	file.time_ns = (int64_t)profile->start_realtime_ns;
	file.duration_ns = (int64_t)(profile->end_ns - profile->start_ns);
	if (profile->events.len) {
		period.type = file.default_type =
			string_of(p, profile_event_name(profile, 0));
		period.unit = string_of(p, code_unit(profile->events.items[0].unit));
		file.period_type = &period;
		file.period = (int64_t)profile->events.items[0].interval;
	}
	put_message(p, 0, &file.base);
	put_comments(p);
	put_strings(p);
}

static int pprof_init(struct pprof *p, const struct profile *profile, const struct writer_options *options, FILE *out)
{
	int err = 0;

	buf_init(&p->packed);
	buf_init(&p->text);
	p->profile = profile;
	p->frame_locations = calloc(profile->frames.len + 1, sizeof(*p->frame_locations));
	if (!p->frame_locations || intern_init(&p->strings) < 0 || intern_init(&p->mappings) < 0 ||
	    intern_init(&p->functions) < 0)
		err = -ENOMEM;
	if (!err)
		err = path_maker_init(&p->path, NULL, profile, options);
	if (!err)
		err = spans_open(&p->spans, profile);
	return err ? err : gzip_open(&p->gzip, out);
}

static void pprof_release(struct pprof *p)
{
	buf_release(&p->packed);
	buf_release(&p->text);
	intern_release(&p->strings);
	intern_release(&p->mappings);
	intern_release(&p->functions);
	path_maker_release(&p->path);
	spans_release(&p->spans);
	free(p->frame_locations);
	map_release(&p->mark_locations);
	map_release(&p->kept_strings);
	map_release(&p->row_ids);
	vec_release(&p->rows);
	vec_release(&p->values);
	vec_release(&p->stack);
}

static int pprof_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct pprof *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	err = pprof_init(p, profile, options, out);
	if (!err) {
		put_head(p);
		err = timeline_each(&profile->samples, collect, p);
		if (!err)
			put_samples(p);
		put_strings(p);
		gzip_close(&p->gzip);
		err = err ? err : p->err;
	}
	pprof_release(p);
	free(p);
	return err ? err : writer_finish(out);
}

const struct writer writer_pprof = {
	.name = "pprof",
	.lacks = "the times of samples, bytecode indexes and leading frames",
	.extensions = "pb.gz,pprof",
	.help = "for `go tool pprof` and tools that read its format",
	.has_all_events = true,
	.write = pprof_write,
};
