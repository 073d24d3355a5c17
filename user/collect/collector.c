/* SPDX-License-Identifier: MIT */
#include "collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/io.h"
#include "base/log.h"
#include "collect/kernel/cpus.h"
#include "collect/kernel/probe.h"
#include "collect/programs.h"
#include "collect/records/validate.h"
#include "collect/tables/mapping_events.h"
#include "collect/tables/unwind_tables.h"
#include "event/options.h"
#include "proc/process.h"

#include "duet.skel.h"

#define MAPPING_RINGS_BYTES (8u << 20) /* on all CPUs together */
#define MAPPING_RINGS_SHARE 16 /* they may take this fraction of the limit: 1/16 */
#define FDINFO_BYTES 4096
#define KEPT_MAX (32u << 20) /* bytes of records that were read, but not handled: seconds of most recordings */
#define KEPT_USUAL (1u << 20)

struct collector {
	struct event_list events;
	struct programs programs;
	struct bpf_link *exec;
	struct bpf_link *exit;
	struct bpf_link *fork;
	struct bpf_link *cgroup; /* NULL if only known processes are sampled, or if the kernel has no such tracepoint */
	struct ring_buffer *ring;
	struct unwind_tables *unwind;
	struct mapping_events *mappings; /* NULL if only known processes are sampled, or the kernel refuses */
	struct cpus cpus;
	uint32_t only_cpu; /* options.only_cpu */

	/*
	 * Records, each 8-byte aligned, that wait for collector_read(), and those that it hands out, from `at` on. A
	 * handler may wait for a parser, and records are kept meanwhile.
	 */
	struct buf kept, handed_out;
	size_t at;
	int kept_count, kept_most;
	uint64_t bad;
};

static int keep_record(void *context, void *data, size_t bytes)
{
	static const char padding[8];
	struct collector *collector = context;
	struct buf *kept = &collector->kept;

	if (!record_check(data, bytes)) {
		collector->bad++;
	} else if (!buf_reserve(kept, bytes + sizeof(padding))) {
		loader_counters[DUET_LOADER_OUT_OF_MEMORY]++;
	} else {
		buf_add(kept, data, bytes);
		buf_add(kept, padding, -bytes % sizeof(padding));
		collector->kept_count++;
	}
	/* A negative value makes libbpf stop after this record. */
	return collector->kept_count < collector->kept_most && kept->len < KEPT_MAX ? 0 : -ECANCELED;
}

static struct unwind_tables_map unwind_map(const struct bpf_map *map)
{
	return (struct unwind_tables_map){.fd = bpf_map__fd(map), .entries = bpf_map__max_entries(map)};
}

static int open_unwind_tables(struct collector *collector)
{
	const struct duet_bpf *bpf = collector->programs.bpf;
	struct unwind_tables_maps maps = {
		.rows = unwind_map(bpf->maps.unwind_rows),
		.pages = unwind_map(bpf->maps.unwind_pages),
		.modules = unwind_map(bpf->maps.unwind_modules),
		.mappings = unwind_map(bpf->maps.unwind_mappings),
		.processes = unwind_map(bpf->maps.unwind_processes),
		.contexts = unwind_map(bpf->maps.contexts),
		.files = unwind_map(bpf->maps.unwind_files),
	};

	return unwind_tables_open(&collector->unwind, &maps);
}

/* Opens everything that needs the loaded programs. Nothing ticks yet. */
static int open_channels(struct collector *collector, const struct collector_options *options, struct buf *why)
{
	struct programs *programs = &collector->programs;
	const struct duet_bpf *bpf = programs->bpf;
	int err;

	/* Attached before the first process may be signalled, so that no exec of it is missed. */
	err = programs_attach(&collector->exec, bpf->progs.on_process_exec, NULL);
	if (err == 0)
		err = programs_attach(&collector->exit, bpf->progs.on_process_exit, NULL);
	if (err == 0 && (!options->targets || options->follow_forks))
		err = programs_attach(&collector->fork, bpf->progs.on_process_fork, NULL);
	if (err < 0)
		return err;
	if (!options->targets)
		(void)programs_attach(&collector->cgroup, bpf->progs.on_cgroup_made, NULL);
	collector->ring = ring_buffer__new(bpf_map__fd(bpf->maps.ring), keep_record, collector, NULL);
	if (!collector->ring)
		return -errno;
	err = open_unwind_tables(collector);
	for (size_t i = 0; !err && i < FAMILIES; i++)
		if (programs->families[i].is_used && bpf_families[i]->open)
			err = bpf_families[i]->open(&programs->families[i], options, why);
	return err;
}

/*
 * Without these events, frames of processes that end at once have no names, and JVMs without samples are not noticed.
 * So a failure here does not end the recording.
 */
static void open_mappings(struct collector *collector, const struct collector_options *options)
{
	size_t limit = options->max_bytes / MAPPING_RINGS_SHARE;
	int err;

	if (options->targets && !options->follow_forks && event_list_has_ticks(options->events))
		return;
	err = mapping_events_open(&collector->mappings,
				  limit && limit < MAPPING_RINGS_BYTES ? limit : MAPPING_RINGS_BYTES);
	if (err < 0)
		log_debug("perf events of mappings: %s", strerrordesc_np(-err));
}

/* Sets the value of a process, in a map whose keys are pids. */
static int put(const struct bpf_map *map, pid_t pid, const void *value, size_t bytes)
{
	return bpf_map__update_elem(map, &pid, sizeof(pid), value, bytes, BPF_ANY);
}

static void explain(struct buf *why, int err)
{
	if (err == -EMFILE) {
		buf_clear(why);
		buf_add_str(why, "too many open files, BPF needs two a CPU: raise the limit, ulimit -n 65536");
	} else if (!why->len && !probe_explain(why)) { /* libbpf: ESRCH, when it has no memory for the kernel's types */
		buf_printf(why, "the kernel refused the BPF programs (%s): -v shows why, --engine ctimer needs no BPF",
			   strerror(err == -ESRCH ? ENOMEM : -err));
	}
}

/* Refuses events that this kernel cannot sample, and events that it cannot sample together. */
static int check_events(struct collector *collector, const struct collector_options *options, struct buf *why)
{
	struct family *families = collector->programs.families;
	int err = families_open(families, &collector->programs, &collector->events);

	for (size_t i = 0; !err && i < FAMILIES; i++)
		if (families[i].is_used && bpf_families[i]->check)
			err = bpf_families[i]->check(&families[i], options, why);
	return err;
}

/* The processes that are sampled, if not all are: those of the options, and with follow_forks their children. */
static int add_targets(struct collector *collector, const struct collector_options *options, struct buf *why)
{
	for (size_t i = 0; options->targets && i < options->target_count; i++) {
		pid_t pid = options->targets[i];
		uint64_t start_ticks;
		int err = process_read_start_ticks(pid, &start_ticks);

		if (!err)
			err = put(collector->programs.bpf->maps.targets, pid, &start_ticks, sizeof(start_ticks));
		if (err < 0)
			return buf_explain(why, err, "process %d cannot be profiled: %s", pid, strerror(-err));
	}
	return 0;
}

int collector_open(struct collector **ret, const struct collector_options *options, struct buf *why)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	struct collector_options expanded = *options;
	int err;

	if (!collector)
		return buf_explain(why, -ENOMEM, "out of memory");
	buf_init(&collector->kept);
	buf_init(&collector->handed_out);
	event_list_expand(&collector->events, options->events);
	if (options->asked->holders)
		event_list_add_holders(&collector->events);
	expanded.events = &collector->events;
	probe_init();
	collector->only_cpu = options->asked->only_cpu;
	cpus_open(&collector->cpus, CPUS_FOLDER, libbpf_num_possible_cpus());
	err = check_events(collector, &expanded, why);
	if (err == 0)
		err = programs_load(&collector->programs, &expanded);
	if (err == 0)
		err = open_channels(collector, &expanded, why);
	if (err < 0) {
		explain(why, err);
	} else {
		open_mappings(collector, options);
		err = add_targets(collector, &expanded, why);
	}
	if (err < 0)
		collector_close(collector);
	else
		*ret = collector;
	return err;
}

static void renew_cpu(void *context, int cpu)
{
	struct collector *collector = context;

	if (collector->only_cpu && collector->only_cpu - 1 != (uint32_t)cpu)
		return;
	for (size_t i = 0; i < FAMILIES; i++)
		if (bpf_families[i]->renew_cpu)
			bpf_families[i]->renew_cpu(&collector->programs.families[i], cpu);
	loader_counters[DUET_LOADER_CPU_CAME]++;
}

int collector_start(struct collector *collector)
{
	int err = 0;

	if (!collector)
		return 0;
	for (size_t i = 0; !err && i < FAMILIES; i++) {
		struct family *family = &collector->programs.families[i];

		if (family->is_used)
			err = family->row->attach ? family->row->attach(family) : family_attach(family);
	}
	collector->cpus.looked_ns = clock_monotonic_ns();
	return err;
}

/* Clocks end first: to close a link takes long. */
void collector_stop(struct collector *collector)
{
	if (!collector)
		return;
	collector->cpus.looked_ns = 0;
	for (size_t i = 0; i < FAMILIES; i++)
		family_detach(&collector->programs.families[i]);
}

void collector_close(struct collector *collector)
{
	if (!collector)
		return;
	collector_stop(collector);
	families_close(collector->programs.families);
	bpf_link__destroy(collector->exec);
	bpf_link__destroy(collector->exit);
	bpf_link__destroy(collector->fork);
	bpf_link__destroy(collector->cgroup);
	ring_buffer__free(collector->ring);
	buf_release(&collector->kept);
	buf_release(&collector->handed_out);
	unwind_tables_close(collector->unwind);
	mapping_events_close(collector->mappings);
	cpus_release(&collector->cpus);
	programs_unload(&collector->programs);
	free(collector);
}

/* Takes records out of the ring until so many are kept. */
static void keep(struct collector *collector, int most)
{
	collector->kept_most = most;
	if (collector->kept_count < most && collector->kept.len < KEPT_MAX)
		(void)ring_buffer__consume(collector->ring);
}

void collector_keep(struct collector *collector)
{
	if (collector)
		keep(collector, INT_MAX);
}

/* Returns the next record, NULL if there is none now. */
static const struct duet_record *next_record(struct collector *collector, int budget)
{
	struct buf *out = &collector->handed_out, handled = *out;
	const struct duet_record *record;

	if (collector->at == out->len) {
		keep(collector, budget);
		*out = collector->kept;
		if (handled.size > KEPT_USUAL)
			buf_release(&handled);
		buf_clear(&handled);
		collector->kept = handled;
		collector->kept_count = 0;
		collector->at = 0;
	}
	if (collector->at == out->len)
		return NULL;
	record = (const void *)(out->data + collector->at);
	collector->at += (record->size + 7u) & ~7u;
	return record;
}

int collector_read(struct collector *collector, collector_handler handler, void *context, int budget, uint64_t *bad)
{
	const struct duet_record *record;
	int got = 0;

	if (!collector || budget <= 0)
		return 0;
	for (size_t i = 0; i < FAMILIES; i++)
		if (bpf_families[i]->step)
			bpf_families[i]->step(&collector->programs.families[i]);
	if (cpus_step(&collector->cpus, clock_monotonic_ns(), renew_cpu, collector))
		mapping_events_renew(collector->mappings);
	for (; got < budget && (record = next_record(collector, budget - got)); got++)
		handler(context, record);
	*bad += collector->bad;
	collector->bad = 0;
	return got;
}

void collector_read_mappings(struct collector *collector, struct mapping_log *log, uint64_t *lost)
{
	if (collector)
		mapping_events_read(collector->mappings, log, lost);
}

int collector_allow(struct collector *collector, pid_t pid, const struct duet_jvm_target *target)
{
	return collector ? put(collector->programs.bpf->maps.jvms, pid, target, sizeof(*target)) : 0;
}

int collector_forbid(struct collector *collector, pid_t pid)
{
	if (!collector)
		return 0;
	for (size_t i = 0; i < FAMILIES; i++)
		if (bpf_families[i]->drop)
			bpf_families[i]->drop(&collector->programs.families[i], pid);
	(void)bpf_map__delete_elem(collector->programs.bpf->maps.jvm_layouts, &pid, sizeof(pid), 0);
	return bpf_map__delete_elem(collector->programs.bpf->maps.jvms, &pid, sizeof(pid), 0);
}

int collector_describe(struct collector *collector, pid_t pid, const struct duet_jvm_entry *jvm)
{
	return collector ? put(collector->programs.bpf->maps.jvm_layouts, pid, jvm, sizeof(*jvm)) : 0;
}

int collector_newest_fd(const struct collector *collector)
{
	const struct duet_bpf *bpf = collector ? collector->programs.bpf : NULL;

	return bpf && bpf->rodata->duet_config.notes_newest ? bpf_map__fd(bpf->maps.newest_samples) : -1;
}

bool collector_is_target(const struct collector *collector, pid_t pid, uint64_t start_ticks)
{
	const struct bpf_map *map = collector ? collector->programs.bpf->maps.targets : NULL;
	uint64_t ticks = 0;

	return map && !bpf_map__lookup_elem(map, &pid, sizeof(pid), &ticks, sizeof(ticks), 0) && ticks == start_ticks;
}

size_t collector_targets(const struct collector *collector, pid_t *ret_pids, size_t most)
{
	const struct bpf_map *map = collector ? collector->programs.bpf->maps.targets : NULL;
	size_t count = 0;
	pid_t before, pid;

	while (map && count < DUET_MAX_TARGETS &&
	       !bpf_map__get_next_key(map, count ? &before : NULL, &pid, sizeof(pid))) {
		if (count < most)
			ret_pids[count] = pid;
		count++;
		before = pid;
	}
	return count;
}

/* Reads the line "memlock:", which bpf_map_show_fdinfo() writes (kernel/bpf/syscall.c). */
static size_t map_memory(const struct bpf_map *map)
{
	BUF(text);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
	return io_read_file(AT_FDCWD, path, FDINFO_BYTES, &text) ? 0 : io_number_of(text.data, "\nmemlock:");
}

struct collector_facts collector_facts(const struct collector *collector)
{
	struct collector_facts facts = {.fd = -1};
	struct bpf_map *map;

	if (!collector)
		return facts;
	facts.tables = collector->unwind;
	facts.fd = ring_buffer__epoll_fd(collector->ring);
	facts.uses_cookie = collector->programs.uses_cookie;
	facts.maps_bytes = mapping_events_bytes(collector->mappings);
	bpf_object__for_each_map(map, collector->programs.bpf->obj)
		facts.maps_bytes += map_memory(map);
	/* libbpf maps a ring twice in a row, and one page each for the consumer's and the producer's position. */
	facts.mapped_bytes = 2 * bpf_map__max_entries(collector->programs.bpf->maps.ring) +
			     2 * (size_t)sysconf(_SC_PAGESIZE) + unwind_tables_touched(collector->unwind);
	return facts;
}

struct family *collector_family(struct collector *collector, size_t id)
{
	return &collector->programs.families[id];
}

/* Sums each of the first `count` values over all CPUs. */
static int sum_of_cpus(const struct bpf_map *map, uint64_t *ret_sums, uint32_t count)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *values = calloc((size_t)cpus, sizeof(*values));
	int err = values ? 0 : -ENOMEM;

	for (uint32_t key = 0; err == 0 && key < count; key++) {
		uint64_t sum = 0;

		err = bpf_map__lookup_elem(map, &key, sizeof(key), values, (size_t)cpus * sizeof(*values), 0);
		for (int cpu = 0; err == 0 && cpu < cpus; cpu++)
			sum += values[cpu];
		if (err == 0)
			ret_sums[key] = sum;
	}
	free(values);
	return err;
}

int collector_counters(const struct collector *collector, uint64_t ret_counters[DUET_BPF_COUNTER_MAX])
{
	memset(ret_counters, 0, DUET_BPF_COUNTER_MAX * sizeof(*ret_counters));
	return collector ? sum_of_cpus(collector->programs.bpf->maps.counters, ret_counters, DUET_BPF_COUNTER_MAX) : 0;
}

int collector_run_times(const struct collector *collector, uint64_t ret_counts[DUET_RUN_TIMES])
{
	return collector ? sum_of_cpus(collector->programs.bpf->maps.run_times, ret_counts, DUET_RUN_TIMES) : 0;
}

uint64_t collector_mapping_records(const struct collector *collector)
{
	return collector ? mapping_events_count(collector->mappings) : 0;
}

static void add_cost(struct duet_cost *sum, const struct duet_cost *cost)
{
	sum->ticks += cost->ticks;
	sum->pending += cost->pending;
	sum->runs += cost->runs;
	sum->run_ns += cost->run_ns;
	if (cost->longest_ns > sum->longest_ns)
		sum->longest_ns = cost->longest_ns;
}

static int cost_of(const struct collector *collector, uint32_t event, struct duet_cost *ret)
{
	size_t cpus = (size_t)libbpf_num_possible_cpus();
	struct duet_cost *costs = calloc(cpus, sizeof(*costs));
	int err = costs ? 0 : -ENOMEM;

	if (!err)
		err = bpf_map__lookup_elem(collector->programs.bpf->maps.costs, &event, sizeof(event), costs,
					   cpus * sizeof(*costs), 0);
	if (!err)
		*ret = (struct duet_cost){0};
	for (size_t cpu = 0; !err && cpu < cpus; cpu++)
		add_cost(ret, &costs[cpu]);
	free(costs);
	return err;
}

int collector_cost(const struct collector *collector, uint32_t event, struct duet_cost *ret)
{
	struct duet_cost sum = {0}, one;
	int err = 0;

	*ret = sum;
	if (collector && event != COLLECTOR_ALL_EVENTS)
		return cost_of(collector, event, ret);
	for (uint32_t i = 0; collector && !err && i < collector->events.len; i++) {
		err = cost_of(collector, i, &one);
		if (!err)
			add_cost(&sum, &one);
	}
	if (!err)
		*ret = sum;
	return err;
}

void collector_sample_every(struct collector *collector, uint32_t ticks)
{
	if (collector)
		collector->programs.bpf->data->duet_every = ticks;
}
