/* SPDX-License-Identifier: MIT */
#include "cmd/record_events.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/record_rows.h"
#include "collect/collector.h"
#include "collect/engines.h"
#include "event/event.h"
#include "session/session.h"

/* async-profiler's users name the engine by -e. */
static const char *event_text(struct session_options *session, const char *text)
{
	if (strcmp(text, "ctimer") != 0 && strcmp(text, "itimer") != 0)
		return text;
	session->engine = (enum session_engine)engine_by_name(text);
	return event_table[0]->name;
}

/* One list, from however many -e. */
static int set_list(struct session_options *session, const struct opt_strings *lists)
{
	struct buf text, why;
	int err;

	buf_init(&text);
	buf_init(&why);
	for (size_t i = 0; i < lists->len; i++)
		buf_printf(&text, "%s%s", i ? "," : "", event_text(session, lists->items[i]));
	err = text.failed ? -ENOMEM : event_list_parse(&session->events, text.data, &why);
	if (err < 0)
		log_error("-e %s: %s", text.failed ? "" : text.data, text.failed ? "out of memory" : why.data);
	buf_release(&text);
	buf_release(&why);
	return err;
}

/* ---- an option for an event ---- */

static int set_option(struct session_options *session, const struct event *event, const char *value)
{
	bool is_switch = event->option == EVENT_SWITCH;
	struct buf why;
	int err;

	buf_init(&why);
	err = event_list_set(&session->events, event, is_switch ? NULL : value, &why);
	if (err < 0)
		log_error("--%s%s%s: %s", event->name, is_switch || !value ? "" : " ", value ? value : "", why.data);
	buf_release(&why);
	return err;
}

static int set_options(struct session_options *session, const struct record_options *options)
{
	int err = 0;

	for (size_t i = 0; !err && event_table[i] && i < RECORD_EVENT_OPTIONS; i++)
		if (options->event_options[i])
			err = set_option(session, event_table[i], options->event_options[i]);
	return err;
}

/* --trace METHOD is the event trace:METHOD. */
static int set_trace(struct session_options *session, const char *text)
{
	const struct event *event;
	struct buf name, why;
	int err = -EINVAL;

	buf_init(&name);
	buf_init(&why);
	buf_printf(&name, "trace:%s", text);
	event = name.failed ? NULL : event_of_text(name.data, &why);
	if (event && !event_is_of_methods(event))
		buf_printf(&why, "'%s' names no Java method: CLASS.METHOD[(SIGNATURE)][:TIME] is accepted", text);
	else if (event)
		err = event_list_set(&session->events, event, NULL, &why);
	if (err < 0)
		log_error("--trace %s: %s", text, why.data);
	buf_release(&name);
	buf_release(&why);
	return err;
}

static int set_traces(struct session_options *session, const struct record_options *options)
{
	int err = 0;

	for (size_t i = 0; !err && i < options->traces.len; i++)
		err = set_trace(session, options->traces.items[i]);
	return err;
}

/* ---- --all ---- */

/* Returns true if BPF samples the events, or will if the user names no engine. */
static bool uses_bpf(const struct session_options *session, const char *engine_word)
{
	int engine = engine_word ? engine_by_name(engine_word) : (int)session->engine;
	struct collector_probe probes[COLLECTOR_PROBES_MAX];

	if (engine > ENGINE_AUTO)
		return !engines[engine].standalone;
	return collector_is_ready(probes, collector_probe(probes, COLLECTOR_PROBES_MAX));
}

/*
 * Adds the events of --all that have no option of their own. The first, cpu, is in the list already, or -e names
 * another one.
 */
static int add_all(struct session_options *session, const struct record_options *options)
{
	bool has_bpf = uses_bpf(session, options->engine);
	int err = 0;

	for (size_t i = 1; !err && event_table[i]; i++) {
		const struct event *event = event_table[i];

		if (!event->is_in_all || event_list_find(&session->events, event))
			continue;
		if (!event_has_ticks(event) || (has_bpf && collector_has_event(event)))
			err = set_option(session, event, NULL);
		else
			log_info("--all: without %s, which this engine or kernel cannot sample", event->name);
	}
	return err;
}

/* ---- intervals of the first event ---- */

/* --freq is only for events that are clocks. */
static int set_freq(struct session_options *session, uint32_t freq)
{
	struct event_spec *spec = &session->events.items[0];

	if (!spec->event->perf.is_clock) {
		log_error("--freq is for cpu: %s has no frequency, give -i", spec->event->name);
		return -EINVAL;
	}
	spec->interval = NS_PER_SEC / freq;
	return 0;
}

static int set_interval(struct session_options *session, const char *text)
{
	struct buf why;
	int err;

	buf_init(&why);
	err = event_spec_set_interval(&session->events.items[0], text, &why);
	if (err < 0)
		log_error("-i %s: %s", text, why.data);
	buf_release(&why);
	return err;
}

/* Returns the interval that the first event's own option gives, or NULL. */
static const char *own_interval(const struct session_options *session, const struct record_options *options)
{
	const struct event *first = session->events.items[0].event;

	for (size_t i = 0; event_table[i] && i < RECORD_EVENT_OPTIONS; i++)
		if (event_table[i] == first && first->option == EVENT_INTERVAL)
			return options->event_options[i];
	return NULL;
}

/* -i and --freq set the interval of the first event. */
static int set_intervals(struct session_options *session, const struct record_options *options)
{
	if (options->freq && options->interval) {
		log_error("-i and --freq both set the interval: give one of them");
		return -EINVAL;
	}
	if ((options->freq || options->interval) && own_interval(session, options)) {
		log_error("%s and --%s both set the interval: give one of them", options->freq ? "--freq" : "-i",
			  session->events.items[0].event->name);
		return -EINVAL;
	}
	if (options->freq)
		return set_freq(session, options->freq);
	return options->interval ? set_interval(session, options->interval) : 0;
}

/* An event that is about another's samples has none without that one. */
static int check_needed(struct session_options *session)
{
	for (size_t i = 0; i < session->events.len; i++) {
		const struct event *event = session->events.items[i].event;

		if (!event->requires || event_list_find(&session->events, event->requires))
			continue;
		log_error("-e %s is about the samples of %s: add -e %s,%s", event->name, event->requires->name,
			  event->requires->name, event->name);
		return -EINVAL;
	}
	return 0;
}

int record_events_set(struct session_options *session, const struct record_options *options)
{
	const char *first = event_table[0]->name;
	const struct opt_strings cpu = {.items = &first, .len = 1};
	const struct opt_strings *lists = options->events.len ? &options->events : options->all ? &cpu : NULL;
	int err = lists ? set_list(session, lists) : 0;

	if (!err)
		err = set_options(session, options);
	if (!err)
		err = set_traces(session, options);
	if (!err && options->all)
		err = add_all(session, options);
	if (!err && !session->events.len)
		err = set_list(session, &cpu);
	if (!err)
		err = check_needed(session);
	return err ? err : set_intervals(session, options);
}
