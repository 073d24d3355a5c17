/* SPDX-License-Identifier: MIT */
#include "collect/tables/mapping_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include "base/counters.h"
#include "base/io.h"
#include "collect/collector.h"
#include "collect/tables/unwinding.h"

#define PAGES_MAX 32 /* for each CPU: an exec writes 600 bytes, and rings are emptied 20 times a second */
#define PAGES_MIN 2

struct mapping_events {
	struct perf_buffer *rings;
	struct perf_buffer *old_rings; /* until they have been read once more; NULL: there are none */
	size_t pages; /* of each ring */
	size_t bytes;
	uint64_t count;
	int map; /* libbpf needs a map for the events; it stays empty */

	/* valid during mapping_events_read() */
	struct mapping_log *log;
	uint64_t *lost;
};

/* The records of perf_event_open(2). Each ends with a time, because of sample_id_all. */
struct record_mapped {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t address, len, offset;
	uint32_t dev_major, dev_minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

struct record_forked {
	struct perf_event_header head;
	uint32_t pid, parent, tid, parent_tid;
};

struct record_comm {
	struct perf_event_header head;
	uint32_t pid, tid;
};

struct record_lost {
	struct perf_event_header head;
	uint64_t id, lost;
};

static uint64_t time_of(const struct perf_event_header *record)
{
	uint64_t time_ns;

	memcpy(&time_ns, (const char *)record + record->size - sizeof(time_ns), sizeof(time_ns));
	return time_ns;
}

/* Adds mappings of files only: other names cannot be found again. The path must end inside the record. */
static void add_mapped(struct mapping_events *events, const struct record_mapped *record, struct mapping_note *note)
{
	size_t room = record->head.size - sizeof(*record) - sizeof(uint64_t);

	if (!record->inode || record->path[0] != '/' || !memchr(record->path, '\0', room) || !record->len ||
	    record->address + record->len < record->address)
		return;
	note->kind = MAPPING_NOTE_MAPPED;
	note->pid = (pid_t)record->pid;
	note->mapping = (struct mapping){
		.start = record->address,
		.end = record->address + record->len,
		.offset = record->offset,
		.inode = record->inode,
		.dev_major = record->dev_major,
		.dev_minor = record->dev_minor,
		.path = (char *)record->path, /* mapping_log_add() copies it */
	};
	*events->lost += mapping_log_add(events->log, note) < 0;
}

/* Ignores new threads, which share their leader's mappings, and other pid namespaces, whose pid is 0. */
static void add_other(struct mapping_events *events, const struct perf_event_header *record, struct mapping_note *note)
{
	const struct record_forked *forked = (const void *)record;
	const struct record_comm *comm = (const void *)record;

	if (record->type == PERF_RECORD_FORK && record->size >= sizeof(*forked) && forked->pid != forked->parent) {
		note->kind = MAPPING_NOTE_FORKED;
		note->pid = (pid_t)forked->pid;
		note->parent = (pid_t)forked->parent;
	} else if (record->type == PERF_RECORD_COMM && record->misc & PERF_RECORD_MISC_COMM_EXEC &&
		   record->size >= sizeof(*comm)) {
		note->kind = MAPPING_NOTE_EXEC;
		note->pid = (pid_t)comm->pid;
	}
	if (note->pid > 0)
		*events->lost += mapping_log_add(events->log, note) < 0;
}

static enum bpf_perf_event_ret on_record(void *context, int cpu, struct perf_event_header *record)
{
	struct mapping_events *events = context;
	struct mapping_note note = {0};

	events->count++;
	if (record->size < sizeof(*record) + sizeof(uint64_t))
		return LIBBPF_PERF_EVENT_CONT;
	note.time_ns = time_of(record);
	if (record->type == PERF_RECORD_LOST && record->size >= sizeof(struct record_lost)) {
		*events->lost += ((const struct record_lost *)record)->lost;
		events->count += ((const struct record_lost *)record)->lost;
	} else if (record->type == PERF_RECORD_MMAP2 && record->size > sizeof(struct record_mapped) + sizeof(uint64_t))
		add_mapped(events, (const struct record_mapped *)record, &note);
	else
		add_other(events, record, &note);
	return LIBBPF_PERF_EVENT_CONT;
}

static size_t pages_each(size_t most_bytes)
{
	size_t most = most_bytes / (size_t)sysconf(_SC_PAGESIZE) / (size_t)libbpf_num_possible_cpus();
	size_t pages = PAGES_MIN;

	while (pages < PAGES_MAX && 2 * pages <= most)
		pages *= 2;
	return pages;
}

/* Returns NULL with errno set on failure. */
static struct perf_buffer *open_rings(struct mapping_events *events)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC, /* as in BPF */
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX, /* no wakeups: the loader reads these records by timer */
	};

	return perf_buffer__new_raw(events->map, events->pages, &attr, on_record, events, NULL);
}

int mapping_events_open(struct mapping_events **ret, size_t most_bytes)
{
	struct mapping_events *events = calloc(1, sizeof(*events));

	if (!events)
		return -ENOMEM;
	events->pages = pages_each(most_bytes);
	events->map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "duet_mappings", sizeof(int), sizeof(int),
				     (uint32_t)libbpf_num_possible_cpus(), NULL);
	if (events->map >= 0)
		events->rings = open_rings(events);
	if (!events->rings) {
		int err = -errno;

		mapping_events_close(events);
		return err;
	}
	events->bytes = events->pages * (size_t)sysconf(_SC_PAGESIZE) * perf_buffer__buffer_cnt(events->rings);
	*ret = events;
	return 0;
}

void mapping_events_close(struct mapping_events *events)
{
	if (!events)
		return;
	perf_buffer__free(events->old_rings);
	perf_buffer__free(events->rings);
	io_close(&events->map);
	free(events);
}

size_t mapping_events_bytes(const struct mapping_events *events)
{
	return events ? events->bytes : 0;
}

uint64_t mapping_events_count(const struct mapping_events *events)
{
	return events ? events->count : 0;
}

void mapping_events_read(struct mapping_events *events, struct mapping_log *log, uint64_t *lost)
{
	if (!events)
		return;
	events->log = log;
	events->lost = lost;
	if (events->old_rings) {
		(void)perf_buffer__consume(events->old_rings);
		perf_buffer__free(events->old_rings);
		events->old_rings = NULL;
	}
	(void)perf_buffer__consume(events->rings);
}

void mapping_events_renew(struct mapping_events *events)
{
	struct perf_buffer *rings = events && !events->old_rings ? open_rings(events) : NULL;

	if (!rings)
		return;
	events->old_rings = events->rings;
	events->rings = rings;
	events->bytes = events->pages * (size_t)sysconf(_SC_PAGESIZE) * perf_buffer__buffer_cnt(rings);
}

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

/* A process that ended before it was read is its parent's user's. */
static void find_payer(struct short_lived *lived, struct process *process, uint64_t time_ns)
{
	const struct process *from = process;

	for (int i = 0; i < FORKS_MAX && process->payer.key == PROCESS_OF_NOBODY; i++) {
		pid_t parent = mapping_log_parent(&lived->log, from->pid, time_ns);

		from = parent ? process_get(lived->processes, parent, 0) : NULL;
		if (!from || from->start_ticks > process->start_ticks)
			return;
		process->payer = from->payer;
	}
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
	bool is_unmapped = !process->maps.list.len && sample->user_depth && !process->is_over_share;

	if (is_unmapped || !collected_of(process)->is_sampled)
		collector_read_mappings(lived->collector, &lived->log, &loader_counters[DUET_LOADER_MAPPINGS_LOST]);
	if (!process->maps.list.len)
		find_payer(lived, process, sample->head.time_ns);
	if (was_read_too_late(lived, process, sample) || is_unmapped)
		find_maps(lived, process, sample);
}

void short_lived_release(struct short_lived *lived)
{
	mapping_log_release(&lived->log);
}
