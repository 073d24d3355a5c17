/* SPDX-License-Identifier: MIT */
#include "readers/jfr/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NONE UINT32_MAX
#define INTERVAL_MAX 32 /* bytes of its text */
#define KINDS_MAX (PROFILE_EVENTS_MAX / 2) /* types of others; there is room for ours */

/* Types of the JDK and of async-profiler. */
static const struct row {
	const char *type, *event;
	enum profile_unit unit;
	const char *weight, *samples, *class_name; /* fields; NULL: it has none */
	const char *tag; /* the field that stands for the stack; "" = there is neither; NULL: it has a stack */
} rows[] = {
	{"jdk.ExecutionSample", "cpu", PROFILE_NS, NULL, NULL, NULL, NULL},
	{"jdk.NativeMethodSample", "native", PROFILE_NS, NULL, NULL, NULL, NULL},
	{"jdk.CPUTimeSample", "cpu-time", PROFILE_NS, "samplingPeriod", NULL, NULL, NULL},
	{"profiler.WallClockSample", "wall", PROFILE_NS, "timeSpan", "samples", NULL, NULL},
	{"jdk.ObjectAllocationSample", "alloc", PROFILE_BYTES, "weight", NULL, "objectClass", NULL},
	{"jdk.ObjectAllocationInNewTLAB", "alloc", PROFILE_BYTES, "tlabSize", NULL, "objectClass", NULL},
	{"jdk.ObjectAllocationOutsideTLAB", "alloc", PROFILE_BYTES, "allocationSize", NULL, "objectClass", NULL},
	{"profiler.LiveObject", "live", PROFILE_BYTES, "allocationSize", NULL, "objectClass", NULL},
	{"jdk.OldObjectSample", "old-object", PROFILE_BYTES, "objectSize", NULL, "object", NULL},
	{"profiler.Malloc", "nativemem", PROFILE_BYTES, "size", NULL, NULL, NULL},
	{"profiler.Free", "free", PROFILE_COUNT, NULL, NULL, NULL, NULL},
	{"jdk.JavaMonitorEnter", "lock", PROFILE_NS, "duration", NULL, "monitorClass", NULL},
	{"profiler.NativeLock", "nativelock", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"jdk.ThreadPark", "park", PROFILE_NS, "duration", NULL, "parkedClass", NULL},
	{"jdk.JavaMonitorWait", "wait", PROFILE_NS, "duration", NULL, "monitorClass", NULL},
	{"jdk.ThreadSleep", "sleep", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"jdk.MethodTrace", "trace", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"jdk.JavaExceptionThrow", "exceptions", PROFILE_COUNT, NULL, NULL, "thrownClass", NULL},
	{"jdk.JavaErrorThrow", "exceptions", PROFILE_COUNT, NULL, NULL, "thrownClass", NULL},
	{"jdk.FileRead", "file-read", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"jdk.FileWrite", "file-write", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"jdk.SocketRead", "socket-read", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"jdk.SocketWrite", "socket-write", PROFILE_NS, "duration", NULL, NULL, NULL},
	{"profiler.Span", "span", PROFILE_NS, "duration", NULL, NULL, "tag"},
	{"profiler.Window", "window", PROFILE_NS, "duration", NULL, NULL, ""},
	{"profiler.UserEvent", "userevent", PROFILE_COUNT, NULL, NULL, "type", "data"},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* duet's own types, whose event is a setting. */
static const struct row own = {.unit = PROFILE_COUNT, .weight = "weight", .samples = "samples"};

/*
 * Any other type with a stack, such as jdk.ClassLoad and those of the program, which is an event of the same name. Its
 * unit follows from its events: the JDK gives a length to many types whose events have none.
 */
static const struct row other = {.unit = PROFILE_COUNT, .weight = "duration"};

void jfr_kinds_release(struct jfr_kinds *kinds)
{
	vec_release(&kinds->items);
}

/* duet writes a live object in two types. */
static bool is_second(const struct jfr_types *types, const char *name)
{
	return !strcmp(name, "jdk.OldObjectSample") && jfr_type_named(types, "profiler.LiveObject");
}

/* The JDK declares stacks for settings, too. duet writes what the views of the JDK show a second time. */
static bool is_read_elsewhere(const struct jfr_types *types, const struct jfr_type *type)
{
	if (jfr_type_named(types, JFR_TYPE_FACT))
		return true;
	for (size_t i = 0; i < type->count; i++)
		if (types->fields.items[type->first + i].slot >= 0)
			return true;
	return false;
}

static const struct row *row_of(const struct jfr_types *types, const struct jfr_type *type)
{
	const char *name = jfr_type_name(types, type);

	if (is_second(types, name))
		return NULL;
	for (size_t i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].type, name))
			return &rows[i];
	if (!strncmp(name, JFR_TYPE_OWN, strlen(JFR_TYPE_OWN)))
		return &own;
	return is_read_elsewhere(types, type) ? NULL : &other;
}

/*
 * The JDK can write the same allocations as samples, and as the buffers and objects of which it takes the samples, and
 * another profiler can write either beside it. The JDK writes an error both as an error and as an exception. So that no
 * byte and no error counts twice, those of the type are an event of their own, unless they are the only ones.
 */
static const struct same {
	const char *type, *apart;
} sames[] = {{"jdk.ObjectAllocationSample", "alloc-sample"}, {"jdk.JavaErrorThrow", "errors"}};

static const char *name_apart(const char *type)
{
	for (size_t i = 0; i < sizeof(sames) / sizeof(*sames); i++)
		if (!strcmp(sames[i].type, type))
			return sames[i].apart;
	return NULL;
}

static const char *event_name(const struct row *row, const char *type)
{
	return row == &own ? type + strlen(JFR_TYPE_OWN) : row == &other ? type : row->event;
}

/* The index of the kind of this type, or -errno: -E2BIG when there are too many. */
static int find_kind(struct jfr_kinds *kinds, const char *type, const struct row *row)
{
	struct intern *strings = &kinds->profile->strings;
	const char *name = event_name(row, type), *apart = name_apart(type);
	struct jfr_kind kind = {
		.type = intern_str(strings, type),
		.maker = kinds->maker,
		.name = intern_str(strings, apart ? apart : name),
		.usual = apart ? intern_str(strings, name) : 0,
		.unit = row->unit,
		.is_ticks = row->unit == PROFILE_NS || row == &other,
		.is_other = row == &other,
		.event = NONE,
		.wall = NONE,
	};

	for (size_t i = 0; i < kinds->items.len; i++)
		if (kinds->items.items[i].type == kind.type && kinds->items.items[i].maker == kind.maker)
			return (int)i;
	if (kinds->items.len >= PROFILE_EVENTS_MAX)
		return -E2BIG;
	return vec_push(&kinds->items, kind) < 0 ? -ENOMEM : (int)kinds->items.len - 1;
}

static bool has_address(const struct row *row)
{
	return row->event && text_is_word(row->event, "nativemem free lock nativelock park wait");
}

/* Types without a stack are not samples. */
static int set_use(struct jfr_kinds *kinds, struct jfr_types *types, struct jfr_type *type, const struct row *row)
{
	struct jfr_kind *kind;

	if ((!row->tag && !jfr_want(types, type, "stackTrace", JFR_STACK)) ||
	    !jfr_want(types, type, "startTime", JFR_TIME))
		return 0;
	if (row == &other && kinds->items.len >= KINDS_MAX)
		return 0;
	type->use = find_kind(kinds, jfr_type_name(types, type), row);
	if (type->use < 0)
		return type->use;
	kind = &kinds->items.items[type->use];
	if (!jfr_want(types, type, "eventThread", JFR_SAMPLED))
		(void)jfr_want(types, type, "sampledThread", JFR_SAMPLED);
	kind->has_weight = jfr_want(types, type, row->weight, JFR_WEIGHT);
	kind->has_samples = jfr_want(types, type, row->samples, JFR_SAMPLES);
	kind->has_tag = jfr_want(types, type, row->tag, JFR_TAG);
	kind->is_object = row->class_name && !strcmp(row->class_name, "object");
	kind->is_outside = row->type && !strcmp(row->type, "jdk.ObjectAllocationOutsideTLAB");
	kind->is_of_user = kind->has_tag && !strcmp(row->tag, "data");
	if (row == &other && kind->event != NONE && kind->unit == PROFILE_COUNT)
		kind->has_weight = false;
	kind->is_duration = kind->has_weight && !strcmp(row->weight, "duration");
	(void)jfr_want(types, type, row->class_name, JFR_CLASS);
	kind->has_state = row->unit == PROFILE_NS && jfr_want(types, type, "state", JFR_ADDRESS);
	if (has_address(row))
		(void)jfr_want(types, type, "address", JFR_ADDRESS);
	kind->has_birth = row->unit == PROFILE_BYTES && jfr_want(types, type, "allocationTime", JFR_ADDRESS);
	return 0;
}

static enum jfr_maker maker_of(const struct jfr_types *types)
{
	if (jfr_type_named(types, JFR_TYPE_FACT))
		return JFR_OF_DUET;
	for (size_t i = 0; i < types->types.len; i++)
		if (!strncmp(jfr_type_name(types, &types->types.items[i]), "profiler.", strlen("profiler.")))
			return JFR_OF_ASYNC_PROFILER;
	return JFR_OF_JDK;
}

int jfr_kinds_begin(struct jfr_kinds *kinds, struct jfr_types *types)
{
	int err = 0;

	kinds->maker = maker_of(types);
	for (size_t i = 0; !err && i < types->types.len; i++) {
		struct jfr_type *type = &types->types.items[i];
		const struct row *row = row_of(types, type);

		type->use = -1;
		if (row)
			err = set_use(kinds, types, type, row);
	}
	return err;
}

/* Parses "20 ms", as the JDK writes it, or nanoseconds. Returns 0 for others, such as "everyChunk". */
static uint64_t interval_of(const char *text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", 1}, {" ns", 1}, {" us", 1000}, {" ms", 1000000}, {" s", 1000000000}};
	char *end = (char *)text;
	unsigned long long value = strnlen(text, INTERVAL_MAX) < INTERVAL_MAX ? strtoull(text, &end, 10) : 0;

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].name) && value <= INT64_MAX / units[i].ns)
			return value * units[i].ns;
	return 0;
}

static void set_unit(struct jfr_kind *kind, const char *value)
{
	for (enum profile_unit unit = 0; unit < PROFILE_UNIT_MAX; unit++)
		if (!strcmp(value, profile_units[unit])) {
			kind->unit = unit;
			kind->has_unit = true;
		}
}

/*
 * async-profiler names the event in a setting of the recording. Most of its events are counts; these are clocks. It
 * writes 0 for its interval of 10 ms.
 */
static void set_event(struct jfr_kinds *kinds, struct jfr_kind *kind, uint32_t value)
{
	bool is_clock =
		text_is_word(profile_text(kinds->profile, value), "cpu ctimer itimer wall cpu-clock task-clock");

	kind->name = value;
	kind->unit = is_clock ? PROFILE_NS : PROFILE_COUNT;
	if (!kind->interval && kind->unit == PROFILE_NS)
		kind->interval = 10000000;
}

static struct jfr_kind *kind_of(struct jfr_kinds *kinds, const char *type_name)
{
	uint32_t type = intern_known(&kinds->profile->strings, type_name);

	for (size_t i = 0; type && i < kinds->items.len; i++)
		if (kinds->items.items[i].type == type && kinds->items.items[i].maker == kinds->maker)
			return &kinds->items.items[i];
	return NULL;
}

void jfr_kind_note(struct jfr_kind *kind, const struct jfr_value values[JFR_SLOTS])
{
	if (!kind->is_other || values[JFR_STACK].number)
		kind->is_met = true;
	if (kind->is_other && kind->event == NONE && values[JFR_WEIGHT].number)
		kind->unit = PROFILE_NS;
}

/* Without an interval, samples of a clock are only counted. */
static void add_event(struct jfr_kinds *kinds, struct jfr_kind *kind)
{
	if (kind->event != NONE)
		return;
	if (kind->is_other && kind->unit == PROFILE_COUNT)
		kind->has_weight = kind->is_duration = false;
	if (!kind->has_weight && !kind->interval && !kind->has_unit)
		kind->unit = PROFILE_COUNT;
	kind->event = profile_event(kinds->profile, intern_text(&kinds->profile->strings, kind->name), kind->unit,
				    kind->interval);
}

static bool is_interval(const struct jfr_kind *kind, const char *name)
{
	return !strcmp(name, JFR_SETTING_INTERVAL) || !strcmp(name, JFR_SETTING_PERIOD) ||
	       (!strcmp(name, "wall") && kind->has_samples);
}

void jfr_kinds_set(struct jfr_kinds *kinds, struct jfr_kind *kind, const char *name, uint32_t id)
{
	const char *value = profile_text(kinds->profile, id);
	struct jfr_kind *of_recording = kind ? NULL : kind_of(kinds, "jdk.ExecutionSample");

	if (of_recording && of_recording->event == NONE && *value && !strcmp(name, JFR_SETTING_EVENT))
		set_event(kinds, of_recording, id);
	if (!kind || kind->event != NONE || !*value)
		return;
	if (!strcmp(name, "wall") && !kind->has_samples)
		kind->wall_interval = interval_of(value);
	if (!strcmp(name, JFR_SETTING_UNIT))
		set_unit(kind, value);
	else if (is_interval(kind, name) && interval_of(value))
		kind->interval = interval_of(value);
	if (!strcmp(name, JFR_SETTING_NAME)) {
		kind->name = id;
		kind->usual = 0;
		add_event(kinds, kind);
	}
}

int jfr_kinds_add_events(struct jfr_kinds *kinds)
{
	for (size_t i = 0; i < ROWS; i++) {
		struct jfr_kind *kind = kind_of(kinds, rows[i].type);

		if (kind && kind->is_met)
			add_event(kinds, kind);
	}
	for (size_t i = 0; i < kinds->items.len; i++) {
		struct jfr_kind *kind = &kinds->items.items[i];

		if (kind->is_met)
			add_event(kinds, kind);
		if (kind->is_met && kind->event == NONE)
			return -ENOMEM;
	}
	return 0;
}

void jfr_kinds_end(struct jfr_kinds *kinds)
{
	struct profile *profile = kinds->profile;

	for (size_t i = 0; i < kinds->items.len; i++) {
		const struct jfr_kind *kind = &kinds->items.items[i];
		bool is_taken = !kind->usual || kind->event == NONE;

		for (size_t event = 0; event < profile->events.len; event++)
			is_taken |= profile->events.items[event].name == kind->usual;
		if (!is_taken && !map_put(&profile->event_ids, kind->usual, kind->event))
			profile->events.items[kind->event].name = kind->usual;
	}
}
