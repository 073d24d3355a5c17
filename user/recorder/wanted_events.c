/* SPDX-License-Identifier: MIT */
#include "recorder/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "event/event.h"

#define WALL_SAMPLES 20 /* of a thread in a period */

static bool writes_jfr(const struct asprof_arguments *from)
{
	return from->writer && !strcmp(from->writer->name, "jfr");
}

/* Callers may ask for other intervals of time than duet has. The weights are exact with any. */
static uint64_t value_of(const char *name, const struct asprof_interval *interval)
{
	const struct event *clock = text_is_word(name, "cpu wall") ? event_by_name(name) : NULL;

	if (clock && interval->value < clock->least_interval)
		return clock->least_interval;
	return clock && interval->value > clock->most_interval ? clock->most_interval : interval->value;
}

static void add_event(struct buf *list, const char *name, const struct asprof_interval *interval)
{
	buf_printf(list, "%s%s", list->len ? "," : "", name);
	if (interval->is_set)
		buf_printf(list, "=%llu", (unsigned long long)value_of(name, interval));
}

static const char *engine_of(const char *event)
{
	return event && text_is_word(event, "ctimer itimer") ? event : "auto";
}

const char *asprof_arguments_main_event(const struct asprof_arguments *from)
{
	bool has_others = from->alloc.is_wanted || from->live || from->lock.is_wanted || from->nativelock.is_wanted ||
			  from->wall.is_wanted || from->nativemem.is_wanted || from->traces.len;

	return from->event ? from->event : from->all || !has_others ? "cpu" : NULL;
}

static const char *main_event(const struct asprof_arguments *from)
{
	const char *event = asprof_arguments_main_event(from);

	return event && (!strcmp(event, "cpu-clock") || strcmp(engine_of(event), "auto")) ? "cpu" : event;
}

/* Only JFR files have them for async-profiler. */
uint64_t asprof_arguments_proc_ns(const struct asprof_arguments *from)
{
	if (from->proc_ns == ASPROF_NOT_SET)
		return from->all && writes_jfr(from) ? ASPROF_PROC_NS : 0;
	return from->proc_ns;
}

static int check_events(const struct asprof_arguments *from, const char *event, size_t count, struct buf *why)
{
	if (from->begin && from->end && !strcmp(from->begin, from->end))
		return buf_explain(why, -EINVAL, "begin and end symbols should not resolve to the same address");
	if (strcmp(engine_of(from->event), "auto") && (from->record.cpus || from->record.only_cpu))
		return buf_explain(why, -EINVAL, "%s is only supported with perf_events",
				   from->record.cpus ? "record-cpu" : "target-cpu");
	if (event && !strcmp(event, "wall") && from->wall.is_wanted)
		return buf_explain(why, -EINVAL, "wall is given twice");
	if (from->writer && !writes_jfr(from) && asprof_arguments_proc_ns(from))
		return buf_explain(why, -EINVAL, "Process sampling requires JFR output format");
	if (count > 1 && from->writer && !from->writer->has_all_events)
		return buf_explain(why, -EINVAL, "Only JFR output supports multiple events");
	return 0;
}

bool asprof_arguments_are_unknown(const struct asprof_arguments *from)
{
	const char *name = main_event(from);
	BUF(why);

	return name && !event_of_text(name, &why);
}

bool asprof_arguments_is_symbol(const struct asprof_arguments *from)
{
	const char *name = main_event(from);
	bool is_symbol = false;

	for (const char *at = name; at && *at; at++) {
		is_symbol = isalnum((unsigned char)*at) || *at == '_' || (*at == ':' && at[1] == ':');
		if (!is_symbol)
			return false;
		at += *at == ':';
	}
	return is_symbol && asprof_arguments_are_unknown(from);
}

/* A sample each time that the code at the symbol is executed. */
static void add_breakpoint(struct buf *list, const char *symbol, const struct asprof_interval *interval)
{
	BUF(name);

	buf_printf(&name, "mem:%s:x", symbol);
	add_event(list, name.data, interval);
}

uint64_t asprof_arguments_wall_ns(const struct asprof_arguments *from)
{
	const struct asprof_interval interval =
		from->event && !strcmp(from->event, "wall") ? from->interval : from->wall;

	return interval.is_set && interval.value ? interval.value : ASPROF_WALL_NS;
}

/* Waits that are shorter than a period are sampled at random. More of them make the number of periods exact. */
static uint64_t wall_sampling_ns(const struct asprof_arguments *from)
{
	uint64_t period_ns = asprof_arguments_wall_ns(from), ns = period_ns / WALL_SAMPLES;

	if (ns < NS_PER_MS)
		return period_ns < NS_PER_MS ? period_ns : NS_PER_MS;
	return ns;
}

/* The events of one word. Returns their number. */
static size_t add_beside(const struct asprof_arguments *from, const char *name, const struct asprof_interval *own,
			 struct buf *list)
{
	const struct asprof_interval sampled = {.is_set = true, .value = ASPROF_ALLOC_BYTES};
	struct asprof_interval interval = *own; /* `interval` is the main event's alone */
	const struct asprof_interval wall = {.is_set = true, .value = wall_sampling_ns(from)};
	bool is_alloc = own == &from->alloc, is_live = is_alloc && (from->live || from->all);

	if (!own->is_wanted && !from->all && !is_live)
		return 0;
	if (!interval.is_set && from->all && own == &from->nativemem)
		interval = sampled;
	/* first, so that the agent knows all memory that is sampled */
	if (own == &from->nativemem && writes_jfr(from) && !from->no_frees)
		add_event(list, "free", &(struct asprof_interval){0});
	if (!is_live || writes_jfr(from)) /* a file of all events has the objects that are in use beside all others */
		add_event(list, name, own == &from->wall ? &wall : &interval);
	if (is_live)
		add_event(list, "live", &interval);
	return 1;
}

/* The traces are one event for the user. */
static size_t add_traces(const struct asprof_arguments *from, struct buf *list)
{
	const struct asprof_interval every = {0};
	BUF(name);

	for (size_t i = 0; i < from->traces.len; i++) {
		buf_clear(&name);
		buf_printf(&name, "trace:%s", from->traces.items[i]);
		add_event(list, name.data, from->event ? &every : &from->interval);
	}
	return from->traces.len != 0;
}

int asprof_arguments_events(const struct asprof_arguments *from, struct buf *ret_list, const char **ret_engine,
			    struct buf *why)
{
	const struct {
		const char *name;
		const struct asprof_interval *interval;
	} beside[] = {{"wall", &from->wall},
		      {"alloc", &from->alloc},
		      {"lock", &from->lock},
		      {"nativelock", &from->nativelock},
		      {"nativemem", &from->nativemem}};
	const char *event = main_event(from);
	size_t count = event != NULL;

	const struct asprof_interval wall = {.is_set = true, .value = wall_sampling_ns(from)};
	bool is_wall = event && !strcmp(event, "wall");

	*ret_engine = engine_of(from->event);
	if (asprof_arguments_is_symbol(from))
		add_breakpoint(ret_list, event, &from->interval);
	else if (event)
		add_event(ret_list, event, is_wall ? &wall : &from->interval);
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		count += add_beside(from, beside[i].name, beside[i].interval, ret_list);
	count += add_traces(from, ret_list);
	return check_events(from, event, count, why);
}

/* Returns true if a method is the main event, or methods are traced and there is none. */
static bool counts_calls(const struct asprof_arguments *from)
{
	const char *event = main_event(from);

	return event ? strchr(event, '.') && !strpbrk(event, ":/") : from->traces.len != 0;
}

bool asprof_arguments_need_perf(const struct asprof_arguments *from)
{
	const char *name = main_event(from);
	const struct event *event;
	BUF(why);

	event = name ? event_of_text(name, &why) : NULL;
	return event && event->program == DUET_PROGRAM_PERF && !event->perf.is_clock;
}

const char *asprof_arguments_source(const struct asprof_arguments *from)
{
	const char *event = main_event(from);

	if (strcmp(engine_of(from->event), "auto") != 0)
		return engine_of(from->event);
	if ((event && !strcmp(event, "wall")) || (!event && from->wall.is_wanted))
		return "wall";
	if (!event && (from->alloc.is_wanted || from->live))
		return "object_sampler";
	if (!event && from->lock.is_wanted)
		return "lock_tracer";
	if (!event && from->nativelock.is_wanted)
		return "native_lock_tracer";
	if (!event && from->nativemem.is_wanted)
		return "malloc_tracer";
	return counts_calls(from) ? "instrument" : "perf_events";
}

/* async-profiler's name of what samples the main event */
static const char *recorded_engine(const struct asprof_arguments *arguments)
{
	bool is_same = arguments->event && text_is_word(arguments->event, "ctimer itimer wall");

	return is_same ? arguments->event : "perf_events";
}

static const char *boolean(bool value)
{
	return value ? "true" : "false";
}

static const char *known(const char *text)
{
	return text ? text : "";
}

/* What is not set has no value. */
void asprof_arguments_settings(const struct asprof_arguments *arguments, struct buf *ret)
{
	const char *event = asprof_arguments_main_event(arguments);
	char *features = strdup(known(arguments->features));

	for (char *plus = features; plus && (plus = strchr(plus, '+'));)
		*plus = ',';
	buf_printf(ret, "engine=%s\nevent=%s\ncstack=%s\nfilter=%s\nbegin=%s\nend=%s\nfeatures=%s\n",
		   recorded_engine(arguments), known(event), arguments->cstack ? arguments->cstack : "vm",
		   known(arguments->filter), known(arguments->begin), known(arguments->end), known(features));
	buf_printf(ret, "jstackdepth=%u\nchunksize=%llu\nchunktime=%llu\nmemlimit=%llu\n",
		   arguments->depth ? arguments->depth : ASPROF_DEPTH, (unsigned long long)arguments->style.chunk_bytes,
		   (unsigned long long)(arguments->style.chunk_ns / NS_PER_SEC),
		   (unsigned long long)arguments->memory_bytes);
	if (event)
		buf_printf(ret, "alluser=%s\n", boolean(arguments->record.all_user));
	if (arguments->wall.is_wanted || arguments->all || (event && !strcmp(event, "wall")))
		buf_printf(ret, "nobatch=%s\n", boolean(arguments->style.jfr.no_batch));
	if (arguments->alloc.is_wanted || arguments->live || arguments->all)
		buf_printf(ret, "live=%s\n", boolean(arguments->live || arguments->all));
	free(features);
}
