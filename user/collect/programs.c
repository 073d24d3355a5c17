/* SPDX-License-Identifier: MIT */
#include "collect/programs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "collect/collector.h"
#include "collect/event_sites.h"
#include "collect/kernel/kernel_types.h"
#include "collect/kernel/probe.h"
#include "duet_agent.h"
#include "duet_unwind.h"
#include "event/options.h"

#include "duet.skel.h"
#include "duet_plain.skel.h"

#define RING_MIN_BYTES (1u << 20)
#define RING_MAX_BYTES (64u << 20)
#define RING_LEAST_BYTES (256u << 10) /* a smaller ring does not hold the samples of a second */
#define COUNTS_A_SECOND 1000 /* assumed rate of events that are not clocks, such as page faults */
#define LARGE_PARTS 16 /* DUET_RECORD_FRAMES records of a deep stack, 4,000 frames */
#define ENTRIES_MIN 64
#define HASH_ENTRY_BYTES 72 /* struct htab_elem and its bucket, kernel/bpf/hashtab.c */
#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"
#define PID_NS_INITIAL 0xeffffffcull /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define THREAD_SIZE_MIN (16u << 10)
/* threads of the host, or of targets, whose state is kept in a hash; a row takes 200 bytes */
#define SLEEPERS_OF_HOST (128u << 10)
#define SLEEPERS_OF_TARGETS (32u << 10)
#define MORE_THREADS 1024 /* those that start between the opening and the start of the recording */
#define IO_CALLS (16u << 10) /* calls at the same time */
#define URING_REQUESTS (16u << 10) /* under way at the same time; a row takes 150 bytes */
#define TLAB_THREADS (16u << 10) /* threads that allocate, a row takes 130 bytes */

/*
 * Returns the samples of one CPU in a second. The rate of events that are not clocks is not known in advance, so it is
 * assumed.
 */
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

/* Returns true if all frames of deep stacks are kept: DUET_RECORD_FRAMES records come before their sample. */
static bool keeps_all(const struct collector_options *options)
{
	return options->asked->java_depth > DUET_JAVA_DEPTH;
}

/* Room for a second of large samples of every CPU, so that a late loader loses nothing. Few samples are larger. */
static uint32_t ring_bytes(const struct collector_options *options)
{
	uint64_t large = sizeof(struct duet_sample) + 2 * DUET_MAX_STACK * sizeof(uint64_t) +
			 (keeps_all(options) ? LARGE_PARTS * sizeof(struct duet_frames_record) : 0);
	uint64_t second = samples_a_second(options->events) * large * (uint64_t)libbpf_num_possible_cpus();
	uint32_t bytes = RING_MIN_BYTES;

	while (bytes < second && bytes < RING_MAX_BYTES)
		bytes *= 2;
	return bytes;
}

/* Returns the inode number of our pid namespace; 0: the initial one, in which pids need no translation. */
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

/* Returns the weight of one run of the event's program. */
static uint64_t tick_weight(const struct event_spec *spec)
{
	return spec->event->counts_pages ? (uint64_t)sysconf(_SC_PAGESIZE) : programs_perf_period(spec);
}

/* Returns the mean number of ticks per sample. */
static uint32_t mean_gap(const struct event_spec *spec)
{
	uint64_t gap = spec->interval / tick_weight(spec);

	return !gap ? 1 : gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
}

bool programs_use_index(const struct event_list *events)
{
	return event_list_count(events, DUET_PROGRAM_PERF) > 1 || event_list_count(events, DUET_PROGRAM_PROBE) > 1 ||
	       event_list_count(events, DUET_PROGRAM_TRACEPOINT) > 1;
}

static void configure_events(struct duet_config *config, const struct event_list *events,
			     const struct event_sites *sites)
{
	config->uses_index = programs_use_index(events);
	for (size_t i = 0; i < events->len; i++) {
		const struct event_spec *spec = &events->items[i];

		if (spec->event->program != DUET_PROGRAM_NONE)
			config->event_of[spec->event->program] = (uint8_t)i;
		config->events[i] = (struct duet_event){
			.tick_weight = tick_weight(spec),
			.gap = mean_gap(spec),
			.is_chosen = spec->event->is_chosen,
			.is_clock = spec->event->perf.is_clock,
			.may_signal = spec->event->may_signal,
			.shown_as = spec->shown_as,
			.field_offset = (uint16_t)sites[i].field.offset,
			.field_bytes = (uint8_t)sites[i].field.bytes,
			.field_is_signed = sites[i].field.is_signed,
			.no_kernel_stack = sites[i].no_kernel_stack,
		};
	}
}

static void configure(struct duet_config *config, const struct collector_options *options,
		      const struct event_sites *sites, const struct returns *returns)
{
	configure_events(config, options->events, sites);
	config->sleep_return = (uint8_t)returns->first;
	config->sleep_by_tid = options->asked->interval_pairing || !probe_has_task_storage();
	config->pidns_inum = pid_namespace();
	config->user_stack_depth =
		options->user_depth < DUET_MAX_WALK ? options->user_depth : DUET_MAX_WALK;
	config->kernel_stack_depth = options->asked->all_user ? 0 : DUET_MAX_STACK;
	config->keep_all = keeps_all(options);
	config->options = options->asked->bpf;
	if (!config->options.sleeps.most_ns)
		config->options.sleeps.most_ns = UINT64_MAX;
	config->filter_targets = options->targets != NULL;
	config->follow_forks = options->follow_forks;
	config->cgroup_id = options->cgroup_id;
	if (options->comm)
		snprintf(config->comm, sizeof(config->comm), "%s", options->comm);
	config->has_task_pt_regs = probe_has_task_pt_regs();
	config->kernel_stack_bytes = kernel_stack_bytes();
}

/* Chooses the tracepoint for requests of io_uring, if an event is about I/O and the kernel has it. */
static void configure_uring(struct duet_config *config, const struct event_list *events, const char **ret_tracepoint)
{
	bool has_entry;

	if (event_list_count(events, DUET_PROGRAM_IO))
		config->uring |= DUET_URING_TIME;
	if (event_list_count(events, DUET_PROGRAM_IO_BYTES))
		config->uring |= DUET_URING_BYTES;
	*ret_tracepoint = config->uring ? probe_uring(&has_entry) : NULL;
	if (*ret_tracepoint && has_entry)
		config->uring |= DUET_URING_HAS_ENTRY;
}

/*
 * Sets the size of the maps that hold only targets, if children do not become targets. The kernel allocates all entries
 * of these maps at once.
 */
static int size_by_targets(struct duet_bpf *bpf, size_t targets)
{
	struct bpf_map *const maps[] = {
		bpf->maps.targets,
		bpf->maps.jvms,
		bpf->maps.jvm_layouts,
		bpf->maps.unwind_processes,
		bpf->maps.contexts,
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(maps) / sizeof(*maps); i++)
		err = bpf_map__set_max_entries(maps[i], targets > ENTRIES_MIN ? (uint32_t)targets : ENTRIES_MIN);
	return err;
}

/* If there are only a few processes, makes the tables smaller than for a whole host. */
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
		{bpf->maps.contexts, HASH_ENTRY_BYTES + sizeof(struct duet_context_sources), 1},
		{bpf->maps.jvm_layouts, HASH_ENTRY_BYTES + sizeof(struct duet_jvm_entry), 2},
		{bpf->maps.offcpu_tids, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.offcpu_tids), 4},
		{bpf->maps.offcpu_parked, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.offcpu_parked), 2},
		{bpf->maps.offcpu_kernels, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.offcpu_kernels), 2},
		{bpf->maps.io_calls, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.io_calls), 1},
		{bpf->maps.uring_requests, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.uring_requests), 1},
		{bpf->maps.uring_repeated, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.uring_repeated), 1},
		{bpf->maps.tlab_threads, HASH_ENTRY_BYTES + bpf_map__value_size(bpf->maps.tlab_threads), 1},
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

/* A perf event interrupts only programs of other kinds, so a second level is needed for those only. */
static int size_levels(struct duet_bpf *bpf, const struct event_list *events)
{
	size_t cannot = event_list_count(events, DUET_PROGRAM_PERF) + event_list_count(events, DUET_PROGRAM_NONE);
	uint32_t levels = cannot < events->len ? DUET_MAX_LEVELS : 1;
	int err = bpf_map__set_max_entries(bpf->maps.scratch, levels);

	return err ? err : bpf_map__set_max_entries(bpf->maps.unwind_known, levels);
}

/* Returns the number of threads of the host and its kernel. */
static uint32_t threads_now(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	unsigned threads = 0;

	if (file && fscanf(file, "%*s %*s %*s %*u/%u", &threads) != 1)
		threads = 0;
	if (file)
		fclose(file);
	return threads < SLEEPERS_OF_HOST ? threads : SLEEPERS_OF_HOST;
}

/* The maps that only events or some hooks for sleeps need. */
static int size_for_sleeps(struct duet_bpf *bpf, const struct collector_options *options)
{
	const struct duet_config *config = (const void *)&bpf->rodata->duet_config;
	bool has_sleeps = event_list_count(options->events, DUET_PROGRAM_OFFCPU);
	int err = 0;

	if (has_sleeps)
		err = bpf_map__set_max_entries(bpf->maps.offcpu_parked, threads_now() + MORE_THREADS);
	if (!err && (!has_sleeps || config->sleep_return == DUET_RETURN_SWITCH_EXIT))
		err = bpf_map__set_max_entries(bpf->maps.offcpu_kernels, 1);
	if (!err && has_sleeps && config->sleep_by_tid)
		err = bpf_map__set_max_entries(bpf->maps.offcpu_tids,
					       options->targets ? SLEEPERS_OF_TARGETS : SLEEPERS_OF_HOST);
	return err;
}

static int size_for_io(const struct programs *chosen, const struct event_list *events)
{
	const struct duet_bpf *bpf = chosen->bpf;
	int err = 0;

	if (event_list_count(events, DUET_PROGRAM_IO))
		err = bpf_map__set_max_entries(bpf->maps.io_calls, IO_CALLS);
	if (!err && chosen->uring)
		err = bpf_map__set_max_entries(bpf->maps.uring_requests, URING_REQUESTS);
	return err || !chosen->uring ? err : bpf_map__set_max_entries(bpf->maps.uring_repeated, URING_REQUESTS);
}

static int size_maps(const struct programs *chosen, const struct collector_options *options)
{
	struct duet_bpf *bpf = chosen->bpf;
	int err = bpf_map__set_max_entries(bpf->maps.ring, ring_bytes(options));

	if (!err)
		err = size_levels(bpf, options->events);
	if (!err)
		err = size_for_sleeps(bpf, options);
	if (!err)
		err = size_for_io(chosen, options->events);
	if (!err && options->probes_tlabs)
		err = bpf_map__set_max_entries(bpf->maps.tlab_threads, TLAB_THREADS);
	if (!err && options->targets)
		err = size_for_targets(bpf, options);
	if (!err && options->max_bytes)
		err = size_by_limit(bpf, options->max_bytes);
	return err;
}

static int choose_offcpu(const struct programs *chosen, bool is_wanted)
{
	const struct duet_bpf *bpf = chosen->bpf;
	bool by_tid = bpf->rodata->duet_config.sleep_by_tid;
	/* NULL: not needed */
	struct bpf_program *const programs[] = {
		bpf->progs.offcpu_switch,
		bpf->progs.offcpu_look,
		bpf->progs.offcpu_report_edge,
		by_tid ? bpf->progs.offcpu_exit : NULL,
		return_program(bpf, chosen->returns.fallback),
		return_early_program(bpf, chosen->returns.first),
		return_early_program(bpf, chosen->returns.fallback),
		chosen->waking,
		chosen->waking ? bpf->progs.wakeup_irq : NULL,
		chosen->waking ? bpf->progs.packets_sent : NULL,
		chosen->waking ? bpf->progs.packets_arrive : NULL,
		chosen->waking ? bpf->progs.packets_delivered : NULL,
		chosen->waking ? bpf->progs.packets_softirq_enter : NULL,
		chosen->waking ? bpf->progs.packets_softirq_exit : NULL,
	};
	int err = chosen->waking ? 0 : bpf_map__set_autocreate(bpf->maps.irqs, false);

	if (!err && !chosen->waking)
		err = bpf_map__set_autocreate(bpf->maps.packets, false);

	if (!err && (!is_wanted || by_tid)) /* older kernels have no task storage */
		err = bpf_map__set_autocreate(bpf->maps.offcpu_threads, false);
	for (size_t i = 0; !err && is_wanted && i < sizeof(programs) / sizeof(*programs); i++)
		if (programs[i])
			err = bpf_program__set_autoload(programs[i], true);
	return err;
}

/* Chooses the programs that the events need. Only these are loaded. */
static int choose(struct programs *chosen, const struct collector_options *options)
{
	const struct event_list *events = options->events;
	const struct duet_bpf *bpf = chosen->bpf;
#define PROGRAM(name, program) [DUET_PROGRAM_##name] = bpf->progs.program,
	struct bpf_program *const programs[] = {DUET_PROGRAMS(PROGRAM)};
	int err = 0;

	memcpy(chosen->of, programs, sizeof(programs));
	if (chosen->uses_cookie)
		chosen->of[DUET_PROGRAM_PERF] = bpf->progs.perf_cookie;
	chosen->of[DUET_PROGRAM_OFFCPU] = return_program(bpf, chosen->returns.first);
	for (size_t i = 0; !err && i < events->len; i++) {
		enum duet_program program = events->items[i].event->program;

		if (program != DUET_PROGRAM_NONE && (program != DUET_PROGRAM_TLAB || options->probes_tlabs))
			err = bpf_program__set_autoload(chosen->of[program], true);
		if (!err && program == DUET_PROGRAM_IO)
			err = bpf_program__set_autoload(bpf->progs.io_enter, true);
	}
	if (!err && chosen->uring)
		err = bpf_program__set_autoload(bpf->progs.uring_submit, true);
	if (!err && chosen->uring)
		err = bpf_program__set_autoload(bpf->progs.uring_complete, true);
	if (!err && event_list_count(events, DUET_PROGRAM_HOLDERS))
		err = bpf_map__set_max_entries(bpf->maps.lock_waiters, DUET_MAX_JVMS);
	if (options->asked->wakers)
		chosen->waking = probe_has_preempt_count() ? bpf->progs.wakeup_waking : bpf->progs.wakeup_waking_plain;
	return err ? err : choose_offcpu(chosen, event_list_count(events, DUET_PROGRAM_OFFCPU));
}

/*
 * Two objects have the same programs and maps. Returns the one that asks the kernel for mappings, or the other one.
 * libbpf reads the kernel's types from the file `types`; -1: all of them, where the kernel has them.
 */
static struct duet_bpf *open_object(bool asks_kernel, int types)
{
	char path[32];
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types >= 0 ? path : NULL);

	_Static_assert(sizeof(struct duet_bpf) == sizeof(struct duet_plain_bpf), "the objects differ");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", types);
	return asks_kernel ? duet_bpf__open_opts(&options) : (struct duet_bpf *)duet_plain_bpf__open_opts(&options);
}

/* Opens an object with the kernel's types that it names, if they can be selected. libbpf reads them when it loads. */
static struct duet_bpf *open_with_types(bool asks_kernel, int *ret_types)
{
	int types = memfd_create("duet-types", MFD_CLOEXEC);
	struct duet_bpf *bpf = open_object(asks_kernel, types);

	*ret_types = types;
	if (!bpf || types < 0 || !kernel_types_select(KERNEL_TYPES, bpf_object__btf(bpf->obj), types))
		return bpf;
	duet_bpf__destroy(bpf);
	return open_object(asks_kernel, -1);
}

static int load(struct programs *ret, const struct collector_options *options, const struct event_sites *sites,
		const struct returns *returns, bool use_cookie, bool asks_kernel)
{
	struct programs loaded = {.returns = *returns, .uses_cookie = use_cookie};
	int types, err;

	loaded.bpf = open_with_types(asks_kernel, &types);
	err = loaded.bpf ? 0 : -errno;
	if (err < 0)
		goto out;
	configure(&loaded.bpf->rodata->duet_config, options, sites, &loaded.returns);
	configure_uring(&loaded.bpf->rodata->duet_config, options->events, &loaded.uring);
	err = choose(&loaded, options);
	if (err == 0 && !asks_kernel)
		err = bpf_map__set_autocreate(loaded.bpf->maps.unwind_files, false);
	if (err == 0)
		err = size_maps(&loaded, options);
	if (err == 0)
		err = duet_bpf__load(loaded.bpf);
	if (err < 0)
		duet_bpf__destroy(loaded.bpf);
	else
		*ret = loaded;
out:
	if (types >= 0)
		close(types);
	return err;
}

/* A kernel that has these functions may still refuse them to this kind of program. */
int programs_load(struct programs *ret, const struct collector_options *options, const struct event_sites *sites,
		  const struct returns *returns)
{
	bool use_cookie = !options->asked->interval_pairing && probe_has_signal_cookie();
	bool asks_kernel = !options->asked->interval_pairing && probe_has_find_vma();

	if ((use_cookie || asks_kernel) && load(ret, options, sites, returns, use_cookie, asks_kernel) == 0)
		return 0;
	return load(ret, options, sites, returns, false, false);
}

void programs_unload(struct programs *programs)
{
	duet_bpf__destroy(programs->bpf);
}

uint64_t programs_perf_period(const struct event_spec *spec)
{
	return spec->event->perf.is_clock || spec->event->perf.by_period ? spec->interval : 1;
}

/* ---- targets ---- */

static int add_target(const struct programs *programs, pid_t pid)
{
	uint64_t start_ticks;
	int err = process_read_start_ticks(pid, &start_ticks);

	if (err < 0)
		return err;
	return bpf_map__update_elem(programs->bpf->maps.targets, &pid, sizeof(pid), &start_ticks, sizeof(start_ticks),
				    BPF_ANY);
}

int programs_add_targets(const struct programs *programs, const struct collector_options *options, struct buf *why)
{
	for (size_t i = 0; options->targets && i < options->target_count; i++) {
		int err = add_target(programs, options->targets[i]);

		if (err < 0) {
			buf_printf(why, "process %d cannot be profiled: %s", options->targets[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

bool programs_have_target(const struct programs *programs, pid_t pid, uint64_t start_ticks)
{
	uint64_t ticks = 0;

	return !bpf_map__lookup_elem(programs->bpf->maps.targets, &pid, sizeof(pid), &ticks, sizeof(ticks), 0) &&
	       ticks == start_ticks;
}

size_t programs_targets(const struct programs *programs, pid_t *ret_pids, size_t most)
{
	size_t count = 0;
	pid_t before, pid;

	while (count < DUET_MAX_TARGETS &&
	       !bpf_map__get_next_key(programs->bpf->maps.targets, count ? &before : NULL, &pid, sizeof(pid))) {
		if (count < most)
			ret_pids[count] = pid;
		count++;
		before = pid;
	}
	return count;
}
