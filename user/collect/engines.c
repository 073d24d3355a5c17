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

/* ---- the engine of a recording ---- */

int engine_open(struct engine_in_use *ret, enum session_engine id, const struct collector_options *options,
		struct buf *why)
{
	const struct engine *row = &engines[id];
	int err;

	*ret = (struct engine_in_use){.row = row, .fd = -1};
	if (row->usable && !row->usable(why))
		return -EPERM;
	if (row->standalone)
		return 0;
	err = collector_open(&ret->collector, options, why);
	if (err < 0)
		return err;
	ret->tables = collector_unwind_tables(ret->collector);
	ret->fd = collector_fd(ret->collector);
	ret->maps_bytes = collector_bytes(ret->collector);
	ret->mapped_bytes = collector_mapped_bytes(ret->collector);
	ret->uses_cookie = collector_uses_cookie(ret->collector);
	return 0;
}

void engine_close(struct engine_in_use *engine)
{
	collector_close(engine->collector);
}

int engine_start(const struct engine_in_use *engine)
{
	return engine->collector ? collector_start(engine->collector) : 0;
}

void engine_stop(const struct engine_in_use *engine)
{
	if (engine->collector)
		collector_stop(engine->collector);
}

int engine_read(const struct engine_in_use *engine, collector_handler handler, void *context, int budget, uint64_t *bad)
{
	return engine->collector ? collector_read(engine->collector, handler, context, budget, bad) : 0;
}

void engine_read_mappings(const struct engine_in_use *engine, struct mapping_log *log, uint64_t *lost)
{
	if (engine->collector)
		collector_read_mappings(engine->collector, log, lost);
}

bool engine_is_target(const struct engine_in_use *engine, pid_t pid, uint64_t start_ticks)
{
	return engine->collector && collector_is_target(engine->collector, pid, start_ticks);
}

size_t engine_targets(const struct engine_in_use *engine, pid_t *ret_pids, size_t most)
{
	return engine->collector ? collector_targets(engine->collector, ret_pids, most) : 0;
}

int engine_allow(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_target *target)
{
	return engine->collector ? collector_allow(engine->collector, pid, target) : 0;
}

int engine_describe(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_entry *jvm)
{
	return engine->collector ? collector_describe(engine->collector, pid, jvm) : 0;
}

void engine_forbid(const struct engine_in_use *engine, pid_t pid)
{
	if (engine->collector)
		(void)collector_forbid(engine->collector, pid);
}

int engine_watch_locks(const struct engine_in_use *engine, pid_t pid, const struct duet_lock_waiters *waiters)
{
	return engine->collector ? collector_watch_locks(engine->collector, pid, waiters) : 0;
}

int engine_probe_tlabs(const struct engine_in_use *engine, const struct process *process, struct buf *why)
{
	if (engine->collector)
		return collector_probe_tlabs(engine->collector, process, why);
	buf_add_str(why, "that takes probes of HotSpot, which need the bpf engine: `duet check` says what it needs");
	return -ENOTSUP;
}

int engine_counters(const struct engine_in_use *engine, uint64_t ret_counters[DUET_BPF_COUNTER_MAX])
{
	memset(ret_counters, 0, DUET_BPF_COUNTER_MAX * sizeof(*ret_counters));
	return engine->collector ? collector_counters(engine->collector, ret_counters) : 0;
}

int engine_cost(const struct engine_in_use *engine, uint32_t event, struct duet_cost *ret)
{
	*ret = (struct duet_cost){0};
	return engine->collector ? collector_cost(engine->collector, event, ret) : 0;
}

int engine_run_times(const struct engine_in_use *engine, uint64_t ret_counts[DUET_RUN_TIMES])
{
	return engine->collector ? collector_run_times(engine->collector, ret_counts) : 0;
}

uint64_t engine_mapping_records(const struct engine_in_use *engine)
{
	return engine->collector ? collector_mapping_records(engine->collector) : 0;
}

void engine_sample_every(const struct engine_in_use *engine, uint32_t ticks)
{
	if (engine->collector)
		collector_sample_every(engine->collector, ticks);
}
