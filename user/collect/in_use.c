/* SPDX-License-Identifier: MIT */
/* The only file that knows that a row may have no functions. */
#include <errno.h>
#include <string.h>

#include "collect/engines.h"

int engine_open(struct engine_in_use *ret, enum session_engine id, const struct collector_options *options,
		struct buf *why)
{
	const struct engine *row = &engines[id];

	*ret = (struct engine_in_use){.row = row, .fd = -1};
	if (row->usable && !row->usable(why))
		return -EPERM;
	return row->open ? row->open(ret, options, why) : 0;
}

void engine_close(struct engine_in_use *engine)
{
	if (engine->collector)
		engine->row->close(engine->collector);
}

int engine_start(const struct engine_in_use *engine)
{
	return engine->row->start ? engine->row->start(engine->collector) : 0;
}

void engine_stop(const struct engine_in_use *engine)
{
	if (engine->row->stop)
		engine->row->stop(engine->collector);
}

int engine_read(const struct engine_in_use *engine, collector_handler handler, void *context, int budget, uint64_t *bad)
{
	return engine->row->read ? engine->row->read(engine->collector, handler, context, budget, bad) : 0;
}

void engine_read_mappings(const struct engine_in_use *engine, struct mapping_log *log, uint64_t *lost)
{
	if (engine->row->read_mappings)
		engine->row->read_mappings(engine->collector, log, lost);
}

bool engine_is_target(const struct engine_in_use *engine, pid_t pid, uint64_t start_ticks)
{
	return engine->row->is_target && engine->row->is_target(engine->collector, pid, start_ticks);
}

size_t engine_targets(const struct engine_in_use *engine, pid_t *ret_pids, size_t most)
{
	return engine->row->targets ? engine->row->targets(engine->collector, ret_pids, most) : 0;
}

int engine_allow(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_target *target)
{
	return engine->row->allow ? engine->row->allow(engine->collector, pid, target) : 0;
}

int engine_describe(const struct engine_in_use *engine, pid_t pid, const struct duet_jvm_entry *jvm)
{
	return engine->row->describe ? engine->row->describe(engine->collector, pid, jvm) : 0;
}

void engine_forbid(const struct engine_in_use *engine, pid_t pid)
{
	if (engine->row->forbid)
		(void)engine->row->forbid(engine->collector, pid);
}

int engine_watch_locks(const struct engine_in_use *engine, pid_t pid, const struct duet_lock_waiters *waiters)
{
	return engine->row->watch_locks ? engine->row->watch_locks(engine->collector, pid, waiters) : 0;
}

int engine_probe_tlabs(const struct engine_in_use *engine, const struct process *process, struct buf *why)
{
	if (engine->row->probe_tlabs)
		return engine->row->probe_tlabs(engine->collector, process, why);
	buf_add_str(why, "that takes probes of HotSpot, which need the bpf engine: `duet check` says what it needs");
	return -ENOTSUP;
}

int engine_counters(const struct engine_in_use *engine, uint64_t ret_counters[DUET_BPF_COUNTER_MAX])
{
	memset(ret_counters, 0, DUET_BPF_COUNTER_MAX * sizeof(*ret_counters));
	return engine->row->counters ? engine->row->counters(engine->collector, ret_counters) : 0;
}

int engine_cost(const struct engine_in_use *engine, uint32_t event, struct duet_cost *ret)
{
	*ret = (struct duet_cost){0};
	return engine->row->cost ? engine->row->cost(engine->collector, event, ret) : 0;
}

uint64_t engine_mapping_records(const struct engine_in_use *engine)
{
	return engine->row->mapping_records ? engine->row->mapping_records(engine->collector) : 0;
}
