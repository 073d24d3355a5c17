/* SPDX-License-Identifier: MIT */
#include "collect/tables/short_lived.h"

#include "base/counters.h"
#include "collect/collector.h"
#include "collect/tables/unwinding.h"

#define FORKS_MAX 8 /* longest chain of forks without exec that is followed to find the mappings */

/* Adds the mappings that the child inherited. Returns false if the parent's mappings are unknown, too. */
static bool add_inherited(struct short_lived *lived, const struct process *child, pid_t parent, struct maps *maps)
{
	const struct process *from = process_get(lived->processes, parent, 0);

	if (!from || from->start_ticks > child->start_ticks || !from->maps.list.len)
		return false;
	for (size_t i = 0; i < from->maps.list.len; i++)
		(void)maps_add(maps, &from->maps.list.items[i]); /* when out of memory, frames lack names */
	return true;
}

/*
 * Returns true if the process executed another program between its first sample and the read of /proc. Checked only at
 * its first sample: BPF reports later execs in order.
 */
static bool was_read_too_late(const struct short_lived *lived, struct process *process,
			      const struct duet_sample *sample)
{
	bool is_first = !collected_of(process)->is_sampled;

	collected_of(process)->is_sampled = true;
	return is_first && mapping_log_has_exec(&lived->log, process->pid, sample->head.time_ns);
}

static void find_maps(struct short_lived *lived, struct process *process, const struct duet_sample *sample)
{
	uint64_t time_ns = sample->head.time_ns;
	pid_t pid = process->pid, parent;
	struct maps maps = {0};

	for (int i = 0; i < FORKS_MAX; i++) {
		if (mapping_log_find(&lived->log, pid, time_ns, &maps, &parent, &time_ns) < 0 || !parent ||
		    add_inherited(lived, process, parent, &maps))
			break;
		pid = parent;
	}
	if (maps.list.len)
		process_adopt_maps(process, &maps);
}

void short_lived_map(struct short_lived *lived, struct process *process, const struct duet_sample *sample)
{
	bool is_unmapped = !process->maps.list.len && sample->user_depth;

	if (is_unmapped || !collected_of(process)->is_sampled)
		collector_read_mappings(lived->collector, &lived->log, &loader_counters[DUET_LOADER_MAPPINGS_LOST]);
	if (was_read_too_late(lived, process, sample) || is_unmapped)
		find_maps(lived, process, sample);
}

void short_lived_release(struct short_lived *lived)
{
	mapping_log_release(&lived->log);
}
