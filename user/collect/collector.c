/* SPDX-License-Identifier: MIT */
#include "collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "collect/mapping_events.h"
#include "collect/perf_events.h"
#include "collect/probe.h"
#include "collect/unwind_tables.h"
#include "collect/validate.h"
#include "proc/process.h"

#include "duet.skel.h"

#define RING_MIN_BYTES (1u << 20)
#define RING_MAX_BYTES (64u << 20)
#define RING_LEAST_BYTES (256u << 10) /* a smaller ring cannot hold a second of samples */
#define COUNTS_A_SECOND 1000 /* guessed rate of events that are no clock, such as page faults */
#define LARGE_PARTS 16 /* DUET_RECORD_FRAMES records of a deep stack: 4,000 frames */
#define ENTRIES_MIN 64
#define MAPPING_RINGS_BYTES (8u << 20) /* on all CPUs together */
#define MAPPING_RINGS_SHARE 16 /* they may take this fraction of the limit: 1/16 */
#define HASH_ENTRY_BYTES 72 /* struct htab_elem and its bucket, kernel/bpf/hashtab.c */
#define PID_NS_INITIAL 0xeffffffcull /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define THREAD_SIZE_MIN (16u << 10)
#define FDINFO_BYTES 4096

struct collector {
	struct event_list events;
	struct duet_bpf *bpf;
	struct bpf_program *programs[DUET_PROGRAM_MAX];
	bool uses_cookie;
	struct bpf_link *exec;
	struct bpf_link *exit;
	struct bpf_link *fork;
	struct bpf_link *cgroup; /* NULL where only known processes are sampled, or the kernel has no such tracepoint */
	struct ring_buffer *ring;
	struct unwind_tables *unwind;
	struct perf_events perf[DUET_MAX_EVENTS]; /* one for each event of the list; empty if it is no perf event */
	struct bpf_link *links[DUET_MAX_EVENTS]; /* likewise; NULL if it is a perf event, or is not attached */
	struct mapping_events *mappings; /* NULL where samples of known processes tell of them, or the kernel refuses */

	/* valid during collector_read() */
	collector_handler handler;
	void *context;
	int budget;
	uint64_t *bad;
};

/* ---- loading ---- */

/* A clock ticks at the interval. Of other events BPF sees each one, and samples one per interval. */
static uint64_t perf_period(const struct event_spec *spec)
{
	return spec->event->perf.is_clock ? spec->interval : 1;
}

/* The samples of one CPU. The rate of events that are no clock is not known in advance, so it is guessed. */
static uint64_t samples_a_second(const struct event_list *events)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < events->len; i++) {
		const struct event_spec *spec = &events->items[i];

		if (spec->event->program != DUET_PROGRAM_NONE)
			sum += spec->event->perf.is_clock ? NS_PER_SEC / spec->interval : COUNTS_A_SECOND;
	}
	return sum;
}

/* Room for a second of large samples of every CPU, so that a late loader loses nothing. Few samples are larger. */
static uint32_t ring_bytes(const struct collector_options *options)
{
	uint64_t large = sizeof(struct duet_sample) + 2 * DUET_MAX_STACK * sizeof(uint64_t) +
			 (options->keep_all ? LARGE_PARTS * sizeof(struct duet_frames_record) : 0);
	uint64_t second = samples_a_second(options->events) * large * (uint64_t)libbpf_num_possible_cpus();
	uint32_t bytes = RING_MIN_BYTES;

	while (bytes < second && bytes < RING_MAX_BYTES)
		bytes *= 2;
	return bytes;
}

/* The inode number of our pid namespace, or 0 in the initial one, where pids need no translation. */
static uint64_t pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == PID_NS_INITIAL)
		return 0;
	return st.st_ino;
}

static uint32_t kernel_stack_bytes(void)
{
	long page = sysconf(_SC_PAGESIZE); /* on arm64 with pages of 64 KiB a kernel stack is one page */

	return page > THREAD_SIZE_MIN ? (uint32_t)page : THREAD_SIZE_MIN;
}

static size_t count_events(const struct event_list *events, enum duet_program program)
{
	size_t count = 0;

	for (size_t i = 0; i < events->len; i++)
		count += events->items[i].event->program == program;
	return count;
}

static void configure_events(struct duet_config *config, const struct event_list *events)
{
	config->perf_events = (uint8_t)count_events(events, DUET_PROGRAM_PERF);
	for (size_t i = 0; i < events->len; i++) {
		const struct event_spec *spec = &events->items[i];

		if (spec->event->program != DUET_PROGRAM_NONE)
			config->event_of[spec->event->program] = (uint8_t)i;
		config->events[i] = (struct duet_event){
			.tick_weight = perf_period(spec),
			.gap = (uint32_t)(spec->interval / perf_period(spec)),
			.is_clock = spec->event->perf.is_clock,
			.may_signal = spec->event->may_signal,
		};
	}
}

static void configure(struct duet_config *config, const struct collector_options *options)
{
	configure_events(config, options->events);
	config->pidns_inum = pid_namespace();
	config->user_stack_depth =
		options->user_depth < DUET_MAX_WALK ? options->user_depth : DUET_MAX_WALK;
	config->kernel_stack_depth = options->kernel_depth < DUET_MAX_STACK ? options->kernel_depth : DUET_MAX_STACK;
	config->keep_all = options->keep_all;
	config->filter_targets = options->targets != NULL;
	config->follow_forks = options->follow_forks;
	config->cgroup_id = options->cgroup_id;
	if (options->comm)
		snprintf(config->comm, sizeof(config->comm), "%s", options->comm);
	config->signals = options->signals;
	config->has_task_pt_regs = probe_has_task_pt_regs();
	config->kernel_stack_bytes = kernel_stack_bytes();
}

/*
 * Sizes the maps that hold only targets if children do not become targets. It matters because the kernel allocates all
 * entries at once.
 */
static int size_by_targets(struct duet_bpf *bpf, size_t targets)
{
	struct bpf_map *const maps[] = {
		bpf->maps.targets,
		bpf->maps.jvms,
		bpf->maps.jvm_layouts,
		bpf->maps.unwind_processes,
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(maps) / sizeof(*maps); i++)
		err = bpf_map__set_max_entries(maps[i], targets > ENTRIES_MIN ? (uint32_t)targets : ENTRIES_MIN);
	return err;
}

/* For a few processes, tables for a whole host are not necessary. */
static int size_for_targets(struct duet_bpf *bpf, const struct collector_options *options)
{
	int err = 0;

	if (!options->follow_forks)
		err = size_by_targets(bpf, options->target_count);
	if (!err)
		err = bpf_map__set_max_entries(bpf->maps.unwind_rows, DUET_UNWIND_MAX_ROWS / 2);
	if (!err)
		err = bpf_map__set_max_entries(bpf->maps.unwind_pages, DUET_UNWIND_MAX_PAGES / 2);
	if (!err)
		err = bpf_map__set_max_entries(bpf->maps.unwind_mappings, DUET_UNWIND_MAX_MAPPINGS / 4);
	return err;
}

/* Limits a map to the entries that fit into `bytes`, but leaves at least ENTRIES_MIN. Never makes it larger. */
static int size_by_share(struct bpf_map *map, size_t bytes, size_t entry_bytes)
{
	uint32_t entries = bpf_map__max_entries(map);

	if (bytes / entry_bytes < entries)
		entries = bytes / entry_bytes > ENTRIES_MIN ? (uint32_t)(bytes / entry_bytes) : ENTRIES_MIN;
	return bpf_map__set_max_entries(map, entries);
}

static int size_by_limit(struct duet_bpf *bpf, size_t bytes)
{
	struct {
		struct bpf_map *map;
		size_t entry_bytes; /* for hashes, with the kernel's own bytes for each entry */
		unsigned share; /* in 64ths of the limit */
	} const shares[] = {
		{bpf->maps.unwind_rows, sizeof(struct duet_unwind_row), 32},
		{bpf->maps.unwind_pages, sizeof(struct duet_unwind_page), 5},
		{bpf->maps.unwind_mappings, sizeof(struct duet_unwind_mapping), 6},
		{bpf->maps.unwind_processes, HASH_ENTRY_BYTES + sizeof(struct duet_unwind_process), 3},
		{bpf->maps.jvms, HASH_ENTRY_BYTES + sizeof(struct duet_jvm_target), 1},
		{bpf->maps.jvm_layouts, HASH_ENTRY_BYTES + sizeof(struct duet_jvm_entry), 2},
	};
	uint32_t ring = bpf_map__max_entries(bpf->maps.ring);
	int err;

	while (ring > RING_LEAST_BYTES && ring > bytes / 16)
		ring /= 2;
	err = bpf_map__set_max_entries(bpf->maps.ring, ring);
	for (size_t i = 0; !err && i < sizeof(shares) / sizeof(*shares); i++)
		err = size_by_share(shares[i].map, bytes / 64 * shares[i].share, shares[i].entry_bytes);
	return err;
}

/* Only a program of another kind can be interrupted by a perf event. */
static int size_levels(struct duet_bpf *bpf, const struct event_list *events)
{
	bool may_nest = count_events(events, DUET_PROGRAM_PERF) + count_events(events, DUET_PROGRAM_NONE) < events->len;
	uint32_t levels = may_nest ? DUET_MAX_LEVELS : 1;
	int err = bpf_map__set_max_entries(bpf->maps.scratch, levels);

	return err ? err : bpf_map__set_max_entries(bpf->maps.unwind_known, levels);
}

static int size_maps(struct duet_bpf *bpf, const struct collector_options *options)
{
	int err = bpf_map__set_max_entries(bpf->maps.ring, ring_bytes(options));

	if (!err)
		err = size_levels(bpf, options->events);
	if (!err && options->targets)
		err = size_for_targets(bpf, options);
	if (!err && options->max_bytes)
		err = size_by_limit(bpf, options->max_bytes);
	return err;
}

/* Chooses the programs, of which only those that the events need are loaded. */
static int choose_programs(struct collector *collector, const struct duet_bpf *bpf, bool use_cookie)
{
#define PROGRAM(name, program) [DUET_PROGRAM_##name] = bpf->progs.program,
	struct bpf_program *const programs[] = {DUET_PROGRAMS(PROGRAM)};
	int err = 0;

	memcpy(collector->programs, programs, sizeof(programs));
	if (use_cookie)
		collector->programs[DUET_PROGRAM_PERF] = bpf->progs.perf_cookie;
	for (size_t i = 0; !err && i < collector->events.len; i++) {
		enum duet_program chosen = collector->events.items[i].event->program;

		if (chosen != DUET_PROGRAM_NONE)
			err = bpf_program__set_autoload(collector->programs[chosen], true);
	}
	return err;
}

/* Opens and loads the skeleton. After an error collector->bpf is NULL. */
static int load(struct collector *collector, const struct collector_options *options, bool use_cookie)
{
	struct duet_bpf *bpf = duet_bpf__open();
	int err;

	if (!bpf)
		return -errno;
	configure(&bpf->rodata->duet_config, options);
	err = choose_programs(collector, bpf, use_cookie);
	if (err == 0)
		err = size_maps(bpf, options);
	if (err == 0)
		err = duet_bpf__load(bpf);
	if (err < 0) {
		duet_bpf__destroy(bpf);
		return err;
	}
	collector->bpf = bpf;
	collector->uses_cookie = use_cookie;
	return 0;
}

/* Uses the cookie if possible. A kernel that has the function may still refuse it to this kind of program. */
static int load_best(struct collector *collector, const struct collector_options *options)
{
	if (!options->no_cookie && probe_has_signal_cookie() && load(collector, options, true) == 0)
		return 0;
	return load(collector, options, false);
}

/* ---- opening ---- */

static int handle_record(void *context, void *data, size_t bytes)
{
	struct collector *collector = context;

	if (record_check(data, bytes))
		collector->handler(collector->context, data);
	else
		(*collector->bad)++;
	/* A negative value makes libbpf stop after this record. */
	return --collector->budget > 0 ? 0 : -ECANCELED;
}

/* Attaches a program to what its section names. */
static int attach(struct bpf_link **ret, const struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach(program);

	if (!link)
		return -errno;
	*ret = link;
	return 0;
}

static struct unwind_tables_map unwind_map(const struct bpf_map *map)
{
	return (struct unwind_tables_map){.fd = bpf_map__fd(map), .entries = bpf_map__max_entries(map)};
}

static int open_unwind_tables(struct collector *collector)
{
	const struct duet_bpf *bpf = collector->bpf;
	struct unwind_tables_maps maps = {
		.rows = unwind_map(bpf->maps.unwind_rows),
		.pages = unwind_map(bpf->maps.unwind_pages),
		.modules = unwind_map(bpf->maps.unwind_modules),
		.mappings = unwind_map(bpf->maps.unwind_mappings),
		.processes = unwind_map(bpf->maps.unwind_processes),
	};

	return unwind_tables_open(&collector->unwind, &maps);
}

static int open_perf_events(struct collector *collector)
{
	int err = 0;

	for (size_t i = 0; err >= 0 && i < collector->events.len; i++) {
		const struct event_spec *spec = &collector->events.items[i];

		if (spec->event->program == DUET_PROGRAM_PERF)
			err = perf_events_open(&collector->perf[i], &spec->event->perf, perf_period(spec));
	}
	return err < 0 ? err : 0;
}

/* Opens everything that follows the load. Nothing ticks yet. */
static int open_channels(struct collector *collector, const struct collector_options *options)
{
	struct duet_bpf *bpf = collector->bpf;
	int err;

	/* Attached before the first process may be signalled: we must not miss its exec. */
	err = attach(&collector->exec, bpf->progs.process_exec);
	if (err == 0)
		err = attach(&collector->exit, bpf->progs.process_exit);
	if (err == 0 && (!options->targets || options->follow_forks))
		err = attach(&collector->fork, bpf->progs.process_fork);
	if (err < 0)
		return err;
	if (!options->targets)
		(void)attach(&collector->cgroup, bpf->progs.cgroup_made);
	collector->ring = ring_buffer__new(bpf_map__fd(bpf->maps.ring), handle_record, collector, NULL);
	if (!collector->ring)
		return -errno;
	err = open_unwind_tables(collector);
	if (err < 0)
		return err;
	return open_perf_events(collector);
}

/*
 * Without these events, frames of processes that end at once have no names, and JVMs that no sample shows are not
 * noticed. That is no reason to fail.
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

static int add_targets(struct collector *collector, const struct collector_options *options, struct buf *why)
{
	for (size_t i = 0; options->targets && i < options->target_count; i++) {
		int err = collector_add_target(collector, options->targets[i]);

		if (err < 0) {
			buf_printf(why, "process %d cannot be profiled: %s", options->targets[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

static void explain(struct buf *why, int err)
{
	if (err == -EMFILE)
		buf_add_str(why, "too many open files, BPF needs two a CPU: raise the limit, ulimit -n 65536");
	else if (!probe_explain(why))
		buf_printf(why, "the kernel refused the BPF programs (%s): -v shows why, --engine ctimer needs no BPF",
			   strerror(-err));
}

int collector_open(struct collector **ret, const struct collector_options *options, struct buf *why)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	int err;

	if (!collector) {
		buf_add_str(why, "out of memory");
		return -ENOMEM;
	}
	collector->events = *options->events;
	probe_init();
	if (count_events(options->events, DUET_PROGRAM_PERF) > 1 && !probe_has_attach_cookie()) {
		buf_add_str(why, "several perf events in one recording need Linux 5.15: give one of them");
		err = -ENOTSUP;
		goto out;
	}
	err = load_best(collector, options);
	if (err == 0)
		err = open_channels(collector, options);
	if (err < 0) {
		explain(why, err);
		goto out;
	}
	open_mappings(collector, options);
	err = add_targets(collector, options, why);
	if (err == 0)
		*ret = collector;
out:
	if (err < 0)
		collector_close(collector);
	return err;
}

int collector_start(struct collector *collector)
{
	bool use_index = count_events(&collector->events, DUET_PROGRAM_PERF) > 1;
	int err = 0;

	for (size_t i = 0; !err && i < collector->events.len; i++) {
		enum duet_program program = collector->events.items[i].event->program;

		if (program == DUET_PROGRAM_PERF)
			err = perf_events_start(&collector->perf[i], collector->programs[program], use_index ? i : 0);
		else if (program != DUET_PROGRAM_NONE)
			err = attach(&collector->links[i], collector->programs[program]);
	}
	return err;
}

void collector_stop(struct collector *collector)
{
	for (size_t i = 0; i < collector->events.len; i++) {
		perf_events_stop(&collector->perf[i]);
		bpf_link__destroy(collector->links[i]);
		collector->links[i] = NULL;
	}
}

void collector_close(struct collector *collector)
{
	if (!collector)
		return;
	collector_stop(collector);
	for (size_t i = 0; i < collector->events.len; i++)
		perf_events_release(&collector->perf[i]);
	bpf_link__destroy(collector->exec);
	bpf_link__destroy(collector->exit);
	bpf_link__destroy(collector->fork);
	bpf_link__destroy(collector->cgroup);
	ring_buffer__free(collector->ring);
	unwind_tables_close(collector->unwind);
	mapping_events_close(collector->mappings);
	duet_bpf__destroy(collector->bpf);
	free(collector);
}

/* ---- while it runs ---- */

int collector_fd(const struct collector *collector)
{
	return ring_buffer__epoll_fd(collector->ring);
}

bool collector_uses_cookie(const struct collector *collector)
{
	return collector->uses_cookie;
}

int collector_read(struct collector *collector, collector_handler handler, void *context, int budget, uint64_t *bad)
{
	int err;

	if (budget <= 0)
		return 0;
	collector->handler = handler;
	collector->context = context;
	collector->budget = budget;
	collector->bad = bad;
	err = ring_buffer__consume(collector->ring);
	return err < 0 && err != -ECANCELED ? err : budget - collector->budget;
}

void collector_read_mappings(struct collector *collector, struct mapping_log *log, uint64_t *lost)
{
	mapping_events_read(collector->mappings, log, lost);
}

int collector_allow(struct collector *collector, pid_t pid, const struct duet_jvm_target *target)
{
	return bpf_map__update_elem(collector->bpf->maps.jvms, &pid, sizeof(pid), target, sizeof(*target), BPF_ANY);
}

int collector_forbid(struct collector *collector, pid_t pid)
{
	/* A process may have no layout. */
	(void)bpf_map__delete_elem(collector->bpf->maps.jvm_layouts, &pid, sizeof(pid), 0);
	return bpf_map__delete_elem(collector->bpf->maps.jvms, &pid, sizeof(pid), 0);
}

int collector_describe(struct collector *collector, pid_t pid, const struct duet_jvm_entry *jvm)
{
	return bpf_map__update_elem(collector->bpf->maps.jvm_layouts, &pid, sizeof(pid), jvm, sizeof(*jvm), BPF_ANY);
}

int collector_add_target(struct collector *collector, pid_t pid)
{
	uint64_t start_ticks;
	int err = process_read_start_ticks(pid, &start_ticks);

	if (err < 0)
		return err;
	return bpf_map__update_elem(collector->bpf->maps.targets, &pid, sizeof(pid), &start_ticks, sizeof(start_ticks),
				    BPF_ANY);
}

bool collector_is_target(const struct collector *collector, pid_t pid, uint64_t start_ticks)
{
	uint64_t ticks = 0;

	return !bpf_map__lookup_elem(collector->bpf->maps.targets, &pid, sizeof(pid), &ticks, sizeof(ticks), 0) &&
	       ticks == start_ticks;
}

/* Reads the line "memlock:", which bpf_map_show_fdinfo() writes (kernel/bpf/syscall.c). */
static size_t map_memory(const struct bpf_map *map)
{
	const char *found;
	struct buf text;
	char path[64];
	size_t bytes = 0;

	buf_init(&text);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
	if (!io_read_file(AT_FDCWD, path, FDINFO_BYTES, &text)) {
		found = strstr(text.data, "memlock:");
		bytes = found ? strtoull(found + strlen("memlock:"), NULL, 10) : 0;
	}
	buf_release(&text);
	return bytes;
}

size_t collector_bytes(const struct collector *collector)
{
	size_t bytes = mapping_events_bytes(collector->mappings);
	struct bpf_map *map;

	bpf_object__for_each_map(map, collector->bpf->obj)
		bytes += map_memory(map);
	return bytes;
}

/* libbpf maps a ring twice in a row, and one page each for the consumer's and the producer's position. */
size_t collector_mapped_bytes(const struct collector *collector)
{
	size_t ring = bpf_map__max_entries(collector->bpf->maps.ring), page = (size_t)sysconf(_SC_PAGESIZE);

	return 2 * ring + 2 * page + unwind_tables_touched(collector->unwind);
}

struct unwind_tables *collector_unwind_tables(const struct collector *collector)
{
	return collector->unwind;
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
	return sum_of_cpus(collector->bpf->maps.counters, ret_counters, DUET_BPF_COUNTER_MAX);
}

int collector_run_times(const struct collector *collector, uint64_t ret_counts[DUET_RUN_TIMES])
{
	return sum_of_cpus(collector->bpf->maps.run_times, ret_counts, DUET_RUN_TIMES);
}

uint64_t collector_mapping_records(const struct collector *collector)
{
	return mapping_events_count(collector->mappings);
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

int collector_event_cost(const struct collector *collector, uint32_t event, struct duet_cost *ret)
{
	size_t cpus = (size_t)libbpf_num_possible_cpus();
	struct duet_cost *costs = calloc(cpus, sizeof(*costs));
	int err = costs ? 0 : -ENOMEM;

	if (!err)
		err = bpf_map__lookup_elem(collector->bpf->maps.costs, &event, sizeof(event), costs,
					   cpus * sizeof(*costs), 0);
	if (!err)
		*ret = (struct duet_cost){0};
	for (size_t cpu = 0; !err && cpu < cpus; cpu++)
		add_cost(ret, &costs[cpu]);
	free(costs);
	return err;
}

int collector_cost(const struct collector *collector, struct duet_cost *ret)
{
	struct duet_cost sum = {0}, one;
	int err = 0;

	for (uint32_t i = 0; !err && i < collector->events.len; i++) {
		err = collector_event_cost(collector, i, &one);
		if (!err)
			add_cost(&sum, &one);
	}
	if (!err)
		*ret = sum;
	return err;
}

void collector_sample_every(struct collector *collector, uint32_t ticks)
{
	collector->bpf->data->duet_every = ticks;
}
