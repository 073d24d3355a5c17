/* SPDX-License-Identifier: MIT */
#include "cmd/record.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "collect/collector.h"
#include "collect/engines.h"
#include "event/event.h"
#include "event/options.h"

/* async-profiler's users name the engine by -e. */
static const char *event_text(struct options *options, const char *text)
{
	if (strcmp(text, "ctimer") != 0 && strcmp(text, "itimer") != 0)
		return text;
	if (!options->given.engine)
		options->engine = (enum session_engine)engine_by_name(text);
	return event_table[0]->name;
}

/* One list, from however many -e. */
static int set_list(struct options *options, const struct opt_strings *lists)
{
	BUF(text);
	BUF(why);
	int err;

	for (size_t i = 0; i < lists->len; i++)
		buf_printf(&text, "%s%s", i ? "," : "", event_text(options, lists->items[i]));
	err = text.failed ? -ENOMEM : event_list_parse(&options->events, text.data, &why);
	if (err < 0)
		log_error("-e %s: %s", text.failed ? "" : text.data, text.failed ? "out of memory" : why.data);
	return err;
}

static int set_option(struct options *options, const struct event *event, const char *value)
{
	bool is_switch = event->option == EVENT_SWITCH;
	BUF(why);
	int err = event_list_set(&options->events, event, is_switch ? NULL : value, &why);

	if (err < 0)
		log_error("--%s%s%s: %s", event->name, is_switch || !value ? "" : " ", value ? value : "", why.data);
	return err;
}

static int set_options(struct options *options)
{
	int err = 0;

	for (size_t i = 0; !err && event_table[i] && i < OPTIONS_EVENTS; i++)
		if (options->given.event_options[i])
			err = set_option(options, event_table[i], options->given.event_options[i]);
	return err;
}

/* --trace METHOD is the event trace:METHOD. */
static int set_trace(struct options *options, const char *text)
{
	const struct event *event;
	BUF(name);
	BUF(why);
	int err = -EINVAL;

	buf_printf(&name, "trace:%s", text);
	event = name.failed ? NULL : event_of_text(name.data, &why);
	if (event && !event_is_of_methods(event))
		buf_printf(&why, "'%s' names no Java method: CLASS.METHOD[(SIGNATURE)][:TIME] is accepted", text);
	else if (event)
		err = event_list_set(&options->events, event, NULL, &why);
	return err < 0 ? log_fail(err, "--trace %s: %s", text, why.data) : 0;
}

static int set_traces(struct options *options)
{
	int err = 0;

	for (size_t i = 0; !err && i < options->given.traces.len; i++)
		err = set_trace(options, options->given.traces.items[i]);
	return err;
}

/* Returns true if BPF samples the events, or will if the user names no engine. */
static bool uses_bpf(const struct options *options)
{
	struct collector_probe probes[COLLECTOR_PROBES_MAX];

	if (options->engine != ENGINE_AUTO)
		return !engines[options->engine].standalone;
	return collector_is_ready(probes, collector_probe(probes, COLLECTOR_PROBES_MAX));
}

/*
 * Adds the events of --all that have no option of their own. The first, cpu, is in the list already, or -e names
 * another one.
 */
static int add_all(struct options *options)
{
	bool has_bpf = uses_bpf(options);
	int err = 0;

	for (size_t i = 1; !err && event_table[i]; i++) {
		const struct event *event = event_table[i];

		if (!event->is_in_all || event_list_find(&options->events, event))
			continue;
		if (!event_has_ticks(event) || (has_bpf ? collector_has_event(event) : event->agent != 0))
			err = set_option(options, event, NULL);
		else
			log_info("--all: without %s, which this engine or kernel cannot sample", event->name);
	}
	return err;
}

/* --freq is only for events that are clocks. */
static int set_freq(struct options *options, uint32_t freq)
{
	struct event_spec *spec = &options->events.items[0];

	if (!spec->event->perf.is_clock)
		return log_refuse("--freq is for cpu: %s has no frequency, give -i", spec->event->name);
	spec->interval = NS_PER_SEC / freq;
	return 0;
}

static int set_interval(struct options *options, const char *text)
{
	BUF(why);
	int err = event_spec_set_interval(&options->events.items[0], text, &why);

	return err < 0 ? log_fail(err, "-i %s: %s", text, why.data) : 0;
}

/* Returns the interval that the first event's own option gives, or NULL. */
static const char *own_interval(const struct options *options)
{
	const struct event *first = options->events.items[0].event;

	for (size_t i = 0; event_table[i] && i < OPTIONS_EVENTS; i++)
		if (event_table[i] == first && first->option == EVENT_INTERVAL)
			return options->given.event_options[i];
	return NULL;
}

/* -i and --freq set the interval of the first event. */
static int set_intervals(struct options *options)
{
	if (options->given.freq && options->given.interval)
		return log_refuse("-i and --freq both set the interval: give one of them");
	if ((options->given.freq || options->given.interval) && own_interval(options))
		return log_refuse("%s and --%s both set the interval: give one of them",
				  options->given.freq ? "--freq" : "-i", options->events.items[0].event->name);
	if (options->given.freq)
		return set_freq(options, options->given.freq);
	return options->given.interval ? set_interval(options, options->given.interval) : 0;
}

/* An event that is about another's samples has none without that one. */
static int check_needed(struct options *options)
{
	for (size_t i = 0; i < options->events.len; i++) {
		const struct event *event = options->events.items[i].event;

		if (!event->requires || event_list_find(&options->events, event->requires))
			continue;
		return log_refuse("-e %s is about the samples of %s: add -e %s,%s", event->name, event->requires->name,
				  event->requires->name, event->name);
	}
	return 0;
}

int record_events_set(struct options *options)
{
	const char *first = event_table[0]->name;
	const struct opt_strings cpu = {.items = &first, .len = 1};
	int err = 0;

	if (options->given.events.len || options->given.all)
		err = set_list(options, options->given.events.len ? &options->given.events : &cpu);
	if (!err)
		err = set_options(options);
	if (!err)
		err = set_traces(options);
	if (!err && options->given.all)
		err = add_all(options);
	if (!err && !options->events.len)
		err = set_list(options, &cpu);
	if (!err)
		err = check_needed(options);
	return err ? err : set_intervals(options);
}
