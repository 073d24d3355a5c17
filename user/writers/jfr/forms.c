/* SPDX-License-Identifier: MIT */
/* Which types of a JFR file the events of a profile have, and how many of each are written. */
#include <string.h>

#include "writers/jfr/stream.h"

bool jfr_is_event(const struct profile *profile, size_t event, const char *name, enum profile_unit unit)
{
	const struct profile_event *row = &profile->events.items[event];

	return row->unit == unit && !strcmp(intern_text(&profile->strings, row->name), name);
}

/* Of two events that would have the same form, the first has it. All traces have theirs. */
static const struct form_row {
	const char *event;
	enum profile_unit unit;
	enum form form;
} form_rows[] = {
	{"offcpu", PROFILE_NS, WALL},	 {"wakeup", PROFILE_NS, WALL},
	{"wall", PROFILE_NS, WALL},	 {"alloc", PROFILE_BYTES, ALLOCATION},
	{"live", PROFILE_BYTES, LIVE},	 {"nativemem", PROFILE_BYTES, MALLOC},
	{"leak", PROFILE_BYTES, MALLOC}, {"lock", PROFILE_NS, LOCK},
	{"wait", PROFILE_NS, WAIT},	 {"nativelock", PROFILE_NS, NATIVE_LOCK},
	{"free", PROFILE_COUNT, FREE},
	{"span", PROFILE_NS, SPAN},	 {"window", PROFILE_NS, WINDOW},
	{"userevent", PROFILE_COUNT, USER_EVENT},
	{"exceptions", PROFILE_COUNT, EXCEPTION},
};

/* The event's name has the method, too. */
static bool is_trace(const struct profile *profile, size_t event)
{
	const struct profile_event *row = &profile->events.items[event];

	return row->unit == PROFILE_NS && !strncmp(intern_text(&profile->strings, row->name), "trace", strlen("trace"));
}

static enum form form_of(const struct writer_stream *j, size_t event)
{
	if (is_trace(j->profile, event))
		return TRACE;
	for (size_t i = 0; i < sizeof(form_rows) / sizeof(*form_rows); i++)
		if (jfr_is_event(j->profile, event, form_rows[i].event, form_rows[i].unit))
			return form_rows[i].form == ALLOCATION && j->options.tlab ? IN_TLAB : form_rows[i].form;
	return OWN;
}

/* Whether one of the first `events` events has it. */
static bool has_form(const struct writer_stream *j, size_t events, enum form form)
{
	for (size_t i = 0; i < events; i++)
		if (j->forms[i] == form)
			return true;
	return false;
}

/* ExecutionSample is the event cpu, else the first that has no other type, as async-profiler does. */
void jfr_choose_forms(struct writer_stream *j)
{
	size_t events = j->profile->events.len, execution = SIZE_MAX;

	for (size_t i = 0; i < events; i++) {
		enum form form = form_of(j, i);

		j->forms[i] = has_form(j, i, form) && form != TRACE ? OWN : form;
		if (j->forms[i] == OWN && (execution == SIZE_MAX || jfr_is_event(j->profile, i, "cpu", PROFILE_NS)))
			execution = i;
	}
	if (execution != SIZE_MAX)
		j->forms[execution] = j->options.cpu_time && jfr_is_event(j->profile, execution, "cpu", PROFILE_NS)
					      ? CPU_TIME
					      : EXECUTION;
	j->waits_park = !jfr_has_form(j, LOCK);
	for (size_t i = 0; i < events; i++)
		j->own[i] = j->forms[i] == OWN;
}

bool jfr_has_form(const struct writer_stream *j, enum form form)
{
	return has_form(j, j->profile->events.len, form);
}

enum jfr_type jfr_type_of(const struct writer_stream *j, size_t event)
{
	static const enum jfr_type types[] = {
		[EXECUTION] = JFR_E_EXECUTION_SAMPLE,
		[CPU_TIME] = JFR_E_CPU_TIME_SAMPLE,
		[WALL] = JFR_E_WALL_CLOCK_SAMPLE,
		[ALLOCATION] = JFR_E_ALLOCATION_SAMPLE,
		[IN_TLAB] = JFR_E_ALLOCATION_IN_NEW_TLAB,
		[LIVE] = JFR_E_LIVE_OBJECT,
		[MALLOC] = JFR_E_MALLOC,
		[FREE] = JFR_E_FREE,
		[LOCK] = JFR_E_MONITOR_ENTER,
		[WAIT] = JFR_E_MONITOR_WAIT,
		[NATIVE_LOCK] = JFR_E_NATIVE_LOCK,
		[TRACE] = JFR_E_METHOD_TRACE,
		[EXCEPTION] = JFR_E_EXCEPTION,
		[SPAN] = JFR_E_SPAN,
		[WINDOW] = JFR_E_WINDOW,
		[USER_EVENT] = JFR_E_USER_EVENT,
	};

	return j->forms[event] == OWN ? (enum jfr_type)(JFR_E_OWN + event) : types[j->forms[event]];
}

/* Asks the category of --ratelimit that the form has; JFR_RATES: it has none. */
bool jfr_is_within_limit(struct writer_stream *j, const struct profile_sample *sample, uint64_t ns, uint64_t events)
{
	static const enum jfr_rate rates[] = {
		[EXECUTION] = JFR_RATE_CPU,
		[CPU_TIME] = JFR_RATE_CPU,
		[WALL] = JFR_RATE_WALL,
		[ALLOCATION] = JFR_RATE_ALLOC,
		[IN_TLAB] = JFR_RATE_ALLOC,
		[LIVE] = JFR_RATES,
		[MALLOC] = JFR_RATE_NATIVEMEM,
		[FREE] = JFR_RATES,
		[LOCK] = JFR_RATE_LOCK,
		[WAIT] = JFR_RATE_LOCK,
		[NATIVE_LOCK] = JFR_RATE_NATIVELOCK,
		[TRACE] = JFR_RATE_TRACE,
		[EXCEPTION] = JFR_RATES,
		[SPAN] = JFR_RATE_SPAN,
		[WINDOW] = JFR_RATES,
		[USER_EVENT] = JFR_RATES,
		[OWN] = JFR_RATES,
	};
	enum form form = j->forms[sample->event];
	enum jfr_rate rate = rates[form];

	if (rate == JFR_RATES || !j->options.jfr.rate_limits[rate] ||
	    jfr_budget_take(&j->budgets[rate], j->options.jfr.rate_limits[rate], ns, form == WALL ? 1 : events))
		return true;
	j->over_limit += form == WALL ? 1 : events;
	return false;
}
