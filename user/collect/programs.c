/* SPDX-License-Identifier: MIT */
#include "collect/programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/io.h"
#include "collect/collector.h"
#include "collect/kernel/kernel_types.h"
#include "collect/kernel/probe.h"
#include "duet_agent.h"
#include "duet_unwind.h"
#include "event/options.h"
#include "proc/process.h"

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

/* Returns the samples of one CPU in a second. Of events that are not clocks, the rate is assumed. */
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

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == PID_NS_INITIAL ? 0 : st.st_ino;
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

static void configure_events(struct duet_config *config, const struct event_list *events)
{
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
		};
	}
}

/* Programs that report something may ask whether they were sampled meanwhile. */
static bool wants_newest(const struct event_list *events)
{
	for (size_t i = 0; i < events->len; i++)
		if (events->items[i].event->agent == DUET_AGENT_EVENT_SPAN ||
		    events->items[i].event->agent == DUET_AGENT_EVENT_USER)
			return true;
	return false;
}

static void configure(struct duet_config *config, const struct collector_options *options)
{
	configure_events(config, options->events);
	config->pidns_inum = pid_namespace();
	config->user_stack_depth =
		options->user_depth < DUET_MAX_WALK ? options->user_depth : DUET_MAX_WALK;
	config->kernel_stack_depth = options->asked->all_user ? 0 : DUET_MAX_STACK;
	config->keep_all = keeps_all(options);
	config->options = options->asked->bpf;
	if (!config->options.sleeps.most_ns)
		config->options.sleeps.most_ns = UINT64_MAX;
	config->filter_targets = options->targets != NULL;
	/* others would see when the threads of a process run */
	config->notes_newest = options->target_count == 1 && !options->follow_forks && wants_newest(options->events);
	config->follow_forks = options->follow_forks;
	config->cgroup_id = options->cgroup_id;
	if (options->comm)
		snprintf(config->comm, sizeof(config->comm), "%s", options->comm);
	config->has_task_pt_regs = probe_has_task_pt_regs();
	config->state_by_tid = options->asked->interval_pairing || !probe_has_task_storage();
	config->kernel_stack_bytes = kernel_stack_bytes();
}

/*
 * If there are only a few processes, makes the tables smaller than for a whole host. The last ones hold only targets,
 * if children do not become targets; the kernel allocates all of their entries at once.
 */
static int size_for_targets(struct duet_bpf *bpf, const struct collector_options *options)
{
	uint32_t targets = options->target_count > ENTRIES_MIN ? (uint32_t)options->target_count : ENTRIES_MIN;
	const struct {
		struct bpf_map *map;
		uint32_t entries;
	} sizes[] = {
		{bpf->maps.unwind_rows, DUET_UNWIND_MAX_ROWS / 2},
		{bpf->maps.unwind_pages, DUET_UNWIND_MAX_PAGES / 2},
		{bpf->maps.unwind_mappings, DUET_UNWIND_MAX_MAPPINGS / 4},
		{bpf->maps.targets, targets},
		{bpf->maps.jvms, targets},
		{bpf->maps.jvm_layouts, targets},
		{bpf->maps.unwind_processes, targets},
		{bpf->maps.contexts, targets},
	};
	size_t count = options->follow_forks ? 3 : sizeof(sizes) / sizeof(*sizes);
	int err = 0;

	for (size_t i = 0; !err && i < count; i++)
		err = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	return err;
}

static struct bpf_map *map_of(const struct duet_bpf *bpf, const struct family_map *of)
{
	return *(struct bpf_map *const *)((const char *)bpf + of->map);
}

/* Limits a map to its share of the limit, but leaves at least ENTRIES_MIN. Never makes it larger. */
static int size_by_share(const struct duet_bpf *bpf, const struct family_map *of, size_t limit)
{
	struct bpf_map *map = map_of(bpf, of);
	size_t head_bytes = bpf_map__type(map) == BPF_MAP_TYPE_ARRAY ? 0 : HASH_ENTRY_BYTES;
	size_t fit = limit / 64 * of->share / (head_bytes + bpf_map__value_size(map));
	uint32_t entries = bpf_map__max_entries(map);

	if (of->share && fit < entries)
		entries = fit > ENTRIES_MIN ? (uint32_t)fit : ENTRIES_MIN;
	return bpf_map__set_max_entries(map, entries);
}

static int size_by_limit(const struct programs *programs, size_t limit)
{
	static const struct family_map maps[] = {
		{FAMILY_MAP(unwind_rows), 0, 32}, {FAMILY_MAP(unwind_pages), 0, 5},
		{FAMILY_MAP(unwind_mappings), 0, 6}, {FAMILY_MAP(unwind_processes), 0, 3},
		{FAMILY_MAP(jvms), 0, 1}, {FAMILY_MAP(contexts), 0, 1}, {FAMILY_MAP(jvm_layouts), 0, 2},
	};
	const struct duet_bpf *bpf = programs->bpf;
	uint32_t ring = bpf_map__max_entries(bpf->maps.ring);
	int err;

	while (ring > RING_LEAST_BYTES && ring > limit / 16)
		ring /= 2;
	err = bpf_map__set_max_entries(bpf->maps.ring, ring);
	for (size_t i = 0; !err && i < sizeof(maps) / sizeof(*maps); i++)
		err = size_by_share(bpf, &maps[i], limit);
	for (size_t i = 0; i < FAMILIES; i++)
		for (size_t j = 0; !err && j < FAMILY_MAPS && bpf_families[i]->maps[j].map; j++)
			err = size_by_share(bpf, &bpf_families[i]->maps[j], limit);
	return err;
}

static int size_maps(const struct programs *programs, const struct collector_options *options)
{
	struct duet_bpf *bpf = programs->bpf;
	int err = bpf_map__set_max_entries(bpf->maps.ring, ring_bytes(options));

	if (!err && options->targets)
		err = size_for_targets(bpf, options);
	if (!err && options->max_bytes)
		err = size_by_limit(programs, options->max_bytes);
	return err;
}

static int prepare(struct family *family, const struct collector_options *options)
{
	const struct family_map *of = family->row->maps;
	int err = 0;

	memset(family->used, 0, sizeof(family->used)); /* of another object */
	for (size_t i = 0; !err && family->is_used && i < FAMILY_MAPS; i++)
		if (of[i].entries)
			err = bpf_map__set_max_entries(map_of(family->programs->bpf, &of[i]), of[i].entries);
	return err || !family->row->prepare ? err : family->row->prepare(family, options);
}

int programs_keep_threads(const struct programs *programs, struct bpf_map *storage, struct bpf_map *by_tid,
			  uint32_t entries)
{
	bool is_by_tid = programs->bpf->rodata->duet_config.state_by_tid;
	int err = !entries || is_by_tid ? bpf_map__set_autocreate(storage, false) : 0;

	return !err && entries && is_by_tid ? bpf_map__set_max_entries(by_tid, entries) : err;
}

/* Chooses the programs that the events need. Only these are loaded. */
static int choose(struct programs *programs, const struct collector_options *options)
{
	const struct duet_bpf *bpf = programs->bpf;
#define PROGRAM(name, program) [DUET_PROGRAM_##name] = bpf->progs.program,
	struct bpf_program *const all[] = {DUET_PROGRAMS(PROGRAM)};
	int err = 0;

	memcpy(programs->of, all, sizeof(all));
	for (size_t i = 0; !err && i < FAMILIES; i++)
		err = prepare(&programs->families[i], options);
	for (size_t i = 0; !err && i < options->events->len; i++) {
		enum duet_program program = options->events->items[i].event->program;

		if (program != DUET_PROGRAM_NONE && programs->of[program])
			err = bpf_program__set_autoload(programs->of[program], true);
	}
	return err;
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
	io_close(ret_types);
	duet_bpf__destroy(bpf);
	return open_object(asks_kernel, -1);
}

static int load(struct programs *programs, const struct collector_options *options, bool use_cookie, bool asks_kernel)
{
	IO_FD(types) = -1;
	int err;

	programs->uses_cookie = use_cookie;
	programs->bpf = open_with_types(asks_kernel, &types);
	if (!programs->bpf)
		return -errno;
	configure(&programs->bpf->rodata->duet_config, options);
	err = choose(programs, options);
	if (err == 0 && !asks_kernel)
		err = bpf_map__set_autocreate(programs->bpf->maps.unwind_files, false);
	if (err == 0)
		err = size_maps(programs, options);
	kernel_types_lend(types > 0 ? types : 0);
	if (err == 0)
		err = duet_bpf__load(programs->bpf);
	kernel_types_lend(0);
	if (err < 0)
		programs_unload(programs);
	return err;
}

/* A kernel that has these functions may still refuse them to this kind of program. */
int programs_load(struct programs *programs, const struct collector_options *options)
{
	bool use_cookie = !options->asked->interval_pairing && probe_has_signal_cookie();
	bool asks_kernel = !options->asked->interval_pairing && probe_has_find_vma();

	if ((use_cookie || asks_kernel) && load(programs, options, use_cookie, asks_kernel) == 0)
		return 0;
	return load(programs, options, false, false);
}

void programs_unload(struct programs *programs)
{
	duet_bpf__destroy(programs->bpf);
	programs->bpf = NULL;
}

uint64_t programs_perf_period(const struct event_spec *spec)
{
	return spec->event->perf.is_clock || spec->event->perf.by_period ? spec->interval : 1;
}

#define FAMILY_ROW(name) &family_##name,
const struct bpf_family *const bpf_families[FAMILIES] = {BPF_FAMILIES(FAMILY_ROW)};

static bool is_of(const struct bpf_family *row, const struct event *event)
{
	return row->programs >> event->program & 1;
}

int families_open(struct family *families, struct programs *programs, const struct event_list *events)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		const struct bpf_family *row = bpf_families[i];

		families[i] = (struct family){.row = row, .programs = programs, .events = events};
		for (size_t j = 0; j < events->len; j++)
			families[i].is_used |= is_of(row, events->items[j].event);
		families[i].state = calloc(1, row->state_bytes + 1);
		if (!families[i].state)
			return -ENOMEM;
	}
	return 0;
}

void families_close(struct family *families)
{
	for (size_t i = 0; i < FAMILIES && families[i].state; i++) {
		if (families[i].row->release)
			families[i].row->release(&families[i]);
		free(families[i].state);
	}
}

int family_use(struct family *family, size_t link, struct bpf_program *program, const char *tracepoint)
{
	family->used[link].program = program;
	family->used[link].tracepoint = tracepoint;
	return bpf_program__set_autoload(program, true);
}

int programs_attach(struct bpf_link **ret, const struct bpf_program *program, const char *tracepoint)
{
	if (*ret || !program)
		return 0;
	*ret = tracepoint ? bpf_program__attach_raw_tracepoint(program, tracepoint) : bpf_program__attach(program);
	return *ret ? 0 : -errno;
}

int family_attach(struct family *family)
{
	int err = 0;

	for (size_t i = 0; !err && i < family->events->len; i++) {
		const struct event *event = family->events->items[i].event;

		if (is_of(family->row, event))
			err = programs_attach(&family->of_events[i], family->programs->of[event->program], NULL);
	}
	for (size_t i = FAMILY_LINKS; !err && i-- > 0;)
		err = programs_attach(&family->links[i], family->used[i].program, family->used[i].tracepoint);
	return err;
}

static void destroy(struct bpf_link **links, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
}

void family_detach(struct family *family)
{
	if (!family->state)
		return;
	if (family->row->detach)
		family->row->detach(family);
	destroy(family->links, FAMILY_LINKS);
	destroy(family->of_events, DUET_MAX_EVENTS);
}

static void holders_drop(struct family *family, pid_t pid)
{
	(void)bpf_map__delete_elem(family->programs->bpf->maps.lock_waiters, &pid, sizeof(pid), 0);
}

int collector_watch_locks(struct collector *collector, pid_t pid, const struct duet_lock_waiters *waiters)
{
	const struct bpf_map *map;

	if (!collector)
		return 0;
	map = collector_family(collector, FAMILY_holders)->programs->bpf->maps.lock_waiters;
	return bpf_map__update_elem(map, &pid, sizeof(pid), waiters, sizeof(*waiters), BPF_ANY);
}

/* Who releases locks. */
const struct bpf_family family_holders = {
	.programs = FAMILY_PROGRAM(HOLDERS),
	.maps = {{FAMILY_MAP(lock_waiters), DUET_MAX_JVMS, 0}},
	.drop = holders_drop,
};

/* One program each, without state. */
const struct bpf_family family_plain = {.programs = FAMILY_PROGRAM(SYSCALLS) | FAMILY_PROGRAM(MMAP)};
