/* SPDX-License-Identifier: MIT */
#include "collect/engines.h"

#include <errno.h>
#include <string.h>

const struct engine engines[] = {
	[ENGINE_AUTO] = {"auto", .help = "the first of bpf, perf and ctimer that can run here"},
	[ENGINE_BPF] = {"bpf", DUET_ENGINE_BPF, .sees_kernel = true,
			.help = "one perf event a CPU: kernel, native and Java frames of every process"},
	[ENGINE_PERF] = {"perf", DUET_ENGINE_PERF, .standalone = true, .sees_kernel = true, .counts = true,
			 .help = "a perf event on each thread: kernel, native and Java frames of your own JVMs",
			 .instead = "which samples your own JVMs alone", .usable = collector_probe_own_threads},
	[ENGINE_CTIMER] = {"ctimer", DUET_ENGINE_CTIMER, .standalone = true,
			   .help = "a timer on each thread's CPU clock: native and Java frames of your own JVMs",
			   .instead = "without kernel frames"},
	[ENGINE_ITIMER] = {"itimer", DUET_ENGINE_ITIMER, .standalone = true,
			   .help = "the same with one timer a process (SIGPROF), for JVMs whose threads must not get "
				   "timers"},
	{0},
};

int engine_by_name(const char *name)
{
	for (int i = 0; engines[i].name; i++)
		if (!strcmp(engines[i].name, name))
			return i;
	return -EINVAL;
}

void engine_names(struct buf *out)
{
	for (int i = 0; engines[i].name; i++)
		buf_printf(out, "%s%s", !i ? "" : engines[i + 1].name ? ", " : " or ", engines[i].name);
}

static bool ticks_for(const struct engine *engine, const struct event *event)
{
	return event->agent == DUET_AGENT_EVENT_CLOCK ||
	       (event->agent == DUET_AGENT_EVENT_PAGE_FAULTS && engine->counts);
}

/*
 * A standalone engine ticks for one kind of event: all clocks have the same ticks. Time off the CPU and events that
 * come from the JVM itself need none.
 */
bool engine_takes(enum session_engine engine, const struct event_list *events)
{
	enum duet_agent_event_kind ticked = DUET_AGENT_EVENT_NONE;

	if (!engines[engine].standalone)
		return true;
	for (size_t i = 0; i < events->len; i++) {
		const struct event *event = events->items[i].event;

		if (!event_has_ticks(event) || event->agent == DUET_AGENT_EVENT_OFFCPU)
			continue;
		if (!ticks_for(&engines[engine], event) || (ticked && ticked != event->agent))
			return false;
		ticked = event->agent;
	}
	return true;
}

bool engine_ticks_for(const struct engine *engine, const struct event_list *events)
{
	for (size_t i = 0; i < events->len; i++)
		if (ticks_for(engine, events->items[i].event))
			return true;
	return false;
}

enum session_engine engine_standalone(const struct event_list *events, struct buf *why)
{
	for (int engine = ENGINE_BPF + 1; engines[engine].name; engine++)
		if ((!events || engine_takes((enum session_engine)engine, events)) &&
		    (!engines[engine].usable || engines[engine].usable(why)))
			return (enum session_engine)engine;
	return ENGINE_AUTO;
}

int engine_open(struct engine_in_use *ret, enum session_engine id, const struct collector_options *options,
		struct buf *why)
{
	const struct engine *row = &engines[id];
	int err = 0;

	*ret = (struct engine_in_use){.row = row};
	if (row->usable && !row->usable(why))
		return -EPERM;
	if (!row->standalone)
		err = collector_open(&ret->collector, options, why);
	ret->facts = collector_facts(ret->collector);
	return err;
}
