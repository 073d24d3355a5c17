/* SPDX-License-Identifier: MIT */
/* Which types of a JFR file the events of a profile have, and how many of each are written (--ratelimit). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "profile/jfr.h"
#include "writers/jfr/stream.h"

bool jfr_is_event(const struct profile *profile, size_t event, const char *name, enum profile_unit unit)
{
	const struct profile_event *row = &profile->events.items[event];

	return row->unit == unit && !strcmp(profile_text(profile, row->name), name);
}

/* clang-format off */
/* Of two events that would have the same form, the first has it. All traces have theirs. */
static const struct {
	enum jfr_type type;
	enum jfr_rate rate; /* the category of --ratelimit; JFR_RATES: it has none */
	const char *interval; /* see jfr_interval_name() */
	enum profile_unit unit;
	const char *events[3]; /* the events of this unit that have the form */
} forms[] = {
	[EXECUTION] = {JFR_E_EXECUTION_SAMPLE, JFR_RATE_CPU, JFR_SETTING_INTERVAL, PROFILE_NS, {NULL}},
	[CPU_TIME] = {JFR_E_CPU_TIME_SAMPLE, JFR_RATE_CPU, JFR_SETTING_INTERVAL, PROFILE_NS, {NULL}},
	[WALL] = {JFR_E_WALL_CLOCK_SAMPLE, JFR_RATE_WALL, "wall", PROFILE_NS, {"offcpu", "wakeup", "wall"}},
	[ALLOCATION] = {JFR_E_ALLOCATION_SAMPLE, JFR_RATE_ALLOC, "alloc", PROFILE_BYTES, {"alloc"}},
	[IN_TLAB] = {JFR_E_ALLOCATION_IN_NEW_TLAB, JFR_RATE_ALLOC, "alloc", PROFILE_BYTES, {NULL}},
	[LIVE] = {JFR_E_LIVE_OBJECT, JFR_RATES, "alloc", PROFILE_BYTES, {"live"}},
	[MALLOC] = {JFR_E_MALLOC, JFR_RATE_NATIVEMEM, "nativemem", PROFILE_BYTES, {"nativemem", "leak"}},
	[FREE] = {JFR_E_FREE, JFR_RATES, JFR_SETTING_PERIOD, PROFILE_COUNT, {"free"}},
	[LOCK] = {JFR_E_MONITOR_ENTER, JFR_RATE_LOCK, "lock", PROFILE_NS, {"lock"}},
	[WAIT] = {JFR_E_MONITOR_WAIT, JFR_RATE_LOCK, JFR_SETTING_PERIOD, PROFILE_NS, {"wait"}},
	[NATIVE_LOCK] = {JFR_E_NATIVE_LOCK, JFR_RATE_NATIVELOCK, "nativelock", PROFILE_NS, {"nativelock"}},
	[TRACE] = {JFR_E_METHOD_TRACE, JFR_RATE_TRACE, JFR_SETTING_PERIOD, PROFILE_NS, {NULL}},
	[EXCEPTION] = {JFR_E_EXCEPTION, JFR_RATES, JFR_SETTING_PERIOD, PROFILE_COUNT, {"exceptions"}},
	[SPAN] = {JFR_E_SPAN, JFR_RATE_SPAN, JFR_SETTING_PERIOD, PROFILE_NS, {"span"}},
	[WINDOW] = {JFR_E_WINDOW, JFR_RATES, JFR_SETTING_PERIOD, PROFILE_NS, {"window"}},
	[USER_EVENT] = {JFR_E_USER_EVENT, JFR_RATES, JFR_SETTING_PERIOD, PROFILE_COUNT, {"userevent"}},
	[OWN] = {JFR_E_OWN, JFR_RATES, JFR_SETTING_PERIOD, PROFILE_COUNT, {NULL}},
};
/* clang-format on */

static bool has_event(const struct profile *profile, size_t event, enum form form)
{
	for (size_t i = 0; i < sizeof(forms->events) / sizeof(*forms->events) && forms[form].events[i]; i++)
		if (jfr_is_event(profile, event, forms[form].events[i], forms[form].unit))
			return true;
	return false;
}

static enum form form_of(const struct writer_stream *j, size_t event)
{
	bool is_time = j->profile->events.items[event].unit == PROFILE_NS;
	enum form form = 0;

	if (is_time && !strncmp(profile_event_name(j->profile, event), "trace", strlen("trace")))
		return TRACE; /* the event's name has the method, too */
	while (form < OWN && !has_event(j->profile, event, form))
		form++;
	return form == ALLOCATION && j->options.tlab ? IN_TLAB : form;
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
	return forms[j->forms[event]].type + (j->forms[event] == OWN ? (enum jfr_type)event : 0);
}

const char *jfr_interval_name(enum form form)
{
	return forms[form].interval;
}

static const char *const rate_names[JFR_RATES] = {
	[JFR_RATE_CPU] = "cpu",	    [JFR_RATE_ALLOC] = "alloc",		[JFR_RATE_LOCK] = "lock",
	[JFR_RATE_WALL] = "wall",   [JFR_RATE_NATIVEMEM] = "nativemem", [JFR_RATE_NATIVELOCK] = "nativelock",
	[JFR_RATE_TRACE] = "trace", [JFR_RATE_SPAN] = "span",
};

int jfr_rates_parse(uint32_t limits[JFR_RATES], const char *text, struct buf *why)
{
	while (*text) {
		size_t len = strcspn(text, ":,;");
		enum jfr_rate rate = 0;
		unsigned long limit = 0;
		char *end = NULL;

		while (rate < JFR_RATES && (strncmp(rate_names[rate], text, len) || rate_names[rate][len]))
			rate++;
		if (rate < JFR_RATES && text[len] == ':' && text[len + 1] >= '0' && text[len + 1] <= '9')
			limit = strtoul(text + len + 1, &end, 10);
		if (!end || (*end && *end != ',' && *end != ';') || !limit || limit > UINT32_MAX)
			return buf_explain(
				why, -EINVAL,
				"ratelimit '%s': CATEGORY:NUMBER is accepted, with commas; categories are cpu, "
				"alloc, lock, wall, nativemem, nativelock, trace and span",
				text);
		limits[rate] = (uint32_t)limit;
		text = end + (*end != '\0');
	}
	return 0;
}

bool jfr_budget_take(struct jfr_budget *budget, uint32_t limit, uint64_t time_ns, uint64_t events)
{
	uint64_t second = time_ns / NS_PER_SEC;

	if (!budget->is_begun)
		budget->left = limit;
	else if (second > budget->second)
		budget->left = second > budget->second + 1 || budget->left > limit ? 2ull * limit
										   : budget->left + limit;
	if (!budget->is_begun || second > budget->second)
		budget->second = second;
	budget->is_begun = true;
	if (events > budget->left)
		return false;
	budget->left -= events;
	return true;
}

bool jfr_is_within_limit(struct writer_stream *j, const struct profile_sample *sample, uint64_t ns, uint64_t events)
{
	enum form form = j->forms[sample->event];
	enum jfr_rate rate = forms[form].rate;

	if (rate == JFR_RATES || !j->options.jfr.rate_limits[rate] ||
	    jfr_budget_take(&j->budgets[rate], j->options.jfr.rate_limits[rate], ns, form == WALL ? 1 : events))
		return true;
	j->over_limit += form == WALL ? 1 : events;
	return false;
}

uint32_t jfr_holder(const struct profile *profile, const struct profile_sample *sample)
{
	uint32_t pid = profile->threads.items[sample->thread].pid, name;

	if (!sample->node || profile_waiter(profile, sample->node) == sample->node)
		return UINT32_MAX;
	name = profile->frames.items[profile->nodes.items[sample->node].frame].name;
	for (uint32_t i = 0; i < profile->threads.len; i++)
		if (profile->threads.items[i].pid == pid && profile->threads.items[i].name == name)
			return i;
	return UINT32_MAX;
}
