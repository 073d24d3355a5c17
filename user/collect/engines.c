/* SPDX-License-Identifier: MIT */
#include "collect/engines.h"

#include <errno.h>
#include <string.h>

static int open_bpf(struct engine_in_use *engine, const struct collector_options *options, struct buf *why)
{
	int err = collector_open(&engine->collector, options, why);

	if (err < 0)
		return err;
	engine->tables = collector_unwind_tables(engine->collector);
	engine->fd = collector_fd(engine->collector);
	engine->maps_bytes = collector_bytes(engine->collector);
	engine->mapped_bytes = collector_mapped_bytes(engine->collector);
	engine->uses_cookie = collector_uses_cookie(engine->collector);
	return 0;
}

const struct engine engines[] = {
	[ENGINE_AUTO] = {"auto", .help = "the first of bpf, perf and ctimer that can run here"},
	[ENGINE_BPF] = {"bpf", DUET_ENGINE_BPF, .sees_kernel = true,
			.help = "one perf event a CPU: kernel, native and Java frames of every process",
			.open = open_bpf, .close = collector_close, .start = collector_start, .stop = collector_stop,
			.read = collector_read, .read_mappings = collector_read_mappings,
			.is_target = collector_is_target, .targets = collector_targets,
			.allow = collector_allow, .describe = collector_describe,
			.forbid = collector_forbid, .watch_locks = collector_watch_locks,
			.probe_tlabs = collector_probe_tlabs,
			.counters = collector_counters, .cost = collector_cost,
			.run_times = collector_run_times, .mapping_records = collector_mapping_records,
			.sample_every = collector_sample_every},
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

/* A standalone engine ticks for one event. Events that come from the JVM itself need no ticks. */
bool engine_takes(enum session_engine engine, const struct event_list *events)
{
	size_t ticked = 0;

	if (!engines[engine].standalone)
		return true;
	for (size_t i = 0; i < events->len; i++) {
		const struct event *event = events->items[i].event;

		if (event_has_ticks(event) && (ticked++ || !ticks_for(&engines[engine], event)))
			return false;
	}
	return true;
}

enum session_engine engine_standalone(const struct event_list *events, struct buf *why)
{
	for (int engine = ENGINE_BPF + 1; engines[engine].name; engine++)
		if ((!events || engine_takes((enum session_engine)engine, events)) &&
		    (!engines[engine].usable || engines[engine].usable(why)))
			return (enum session_engine)engine;
	return ENGINE_AUTO;
}
