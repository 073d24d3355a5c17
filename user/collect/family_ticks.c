/* SPDX-License-Identifier: MIT */
/*
 * What perf counts or runs programs for: clocks, counters, breakpoints, tracepoints and probes. Their places are looked
 * up on this host and in the processes to sample.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/io.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/kernel/probe.h"
#include "collect/kernel/perf_sources.h"
#include "collect/perf_events.h"
#include "collect/programs.h"
#include "event/options.h"
#include "sym/debug_file.h"
#include "sym/parsed_file.h"
#include "sym/target_file.h"

#include "duet.skel.h"

/* most probes that are opened for single processes; above, one is opened for all processes */
#define PROBES_BY_PROCESS 64
#define PROBE_COUNTER_SHIFT 32 /* in attr.config: offset of the variable that the kernel increments, Linux 4.20 */
#define KALLSYMS_LINE 1024

/* The perf events to open for an event. */
struct event_sites {
	struct vec(struct event_perf) list; /* a static probe can have several places */
	struct tracefs_field field; /* of a tracepoint: the field that is the weight of a hit; bytes is 0 without one */
	bool no_kernel_stack;
	struct target_file file; /* file of a probe; it must stay open until the probe is opened */
	bool has_file;
	char path[32]; /* of that descriptor */
	char *place; /* its path in its process's root, beside which its debug file may lie; NULL without one */
};

/* By index in the list of events; empty if the event is of another family. */
struct ticks {
	struct event_sites sites[DUET_MAX_EVENTS];
	struct perf_events perf[DUET_MAX_EVENTS];
};

/* ---- files of probes ---- */

static pid_t first_target(const struct collector_options *options)
{
	return options->targets && options->target_count ? options->targets[0] : 0;
}

/* Finds the file of this name among those that the process has mapped. */
static int find_mapped(struct event_sites *ret, pid_t pid, const char *name)
{
	struct process_table table;
	const struct process *process;
	const struct mapping *mapping;
	int err = -ENOENT;

	process_table_init(&table);
	process = pid ? process_get(&table, pid, 0) : NULL;
	mapping = process && !process->exited ? maps_find_file(&process->maps, name) : NULL;
	if (mapping)
		err = target_file_find_mapping(&ret->file, CHARGE_OWN(process->living), process, mapping);
	if (!err)
		ret->place = strdup(mapping->path);
	process_table_release(&table);
	return err;
}

/* A path in another process's root is looked up in that root, and its links are followed there. */
static int find_path(struct event_sites *ret, const char *path)
{
	char *folder;
	int pid = 0, root = 0;

	if (path[strspn(path, "/")] == '\0')
		return -EINVAL; /* the root folder */
	if (sscanf(path, "/proc/%d/root/%n", &pid, &root) == 1 && root)
		path += root - 1;
	else
		pid = getpid();
	folder = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
	if (!folder || asprintf(&ret->place, "%s%s%s", folder, path[0] == '/' ? "" : "/", path) < 0)
		ret->place = NULL;
	free(folder);
	return ret->place ? target_file_find(&ret->file, CHARGE_OWN(getpid()), pid, ret->place) : -ENOMEM;
}

static int explain_file(const char *file, int err, struct buf *why)
{
	if (err == -ENOENT && !strchr(file, '/'))
		buf_printf(why, "the process to profile has no file '%s' mapped: give the file's path", file);
	else if (err == -EINVAL)
		buf_printf(why, "%s is no regular file, and only these can be probed", file);
	else if (err == -ENOEXEC)
		buf_printf(why, "%s is no program or library (ELF)", file);
	else
		buf_printf(why, "%s cannot be read: %s", file, strerror(-err));
	return err;
}

#define ANY_FILE "*" /* in the place of a file: the first one of the process that has the function */

/* Returns true if this mapping's file, or its debug file, has the symbol. Then the file stays open. */
static bool open_if_it_has(struct target_file *file, const struct process *process, const struct mapping *mapping,
			   const char *name, bool is_function, bool in_debug_file, uint64_t *ret_vaddr)
{
	const struct charge *charge = CHARGE_OWN(process->living);

	if (mapping->path[0] != '/' || target_file_find_mapping(file, charge, process, mapping))
		return false;
	if (target_file_read(file, charge, 0) >= 0 &&
	    (in_debug_file ? debug_file_symbol(charge, file, mapping->path, name, is_function, ret_vaddr)
			   : parsed_symbol(charge, file, name, is_function, ret_vaddr, NULL) >= 0))
		return true;
	target_file_release(file);
	return false;
}

/* Opens the first file that has the symbol. Returns the file's first mapping, or NULL. */
static const struct mapping *open_first(struct target_file *file, const struct process *process, const char *name,
					bool is_function, uint64_t *ret_vaddr)
{
	const struct mapping *mappings = process->maps.list.items;

	for (int debug = 0; debug < 2; debug++)
		for (size_t i = 0; i < process->maps.list.len; i++) /* those of a file follow each other */
			if ((!i || strcmp(mappings[i].path, mappings[i - 1].path)) &&
			    open_if_it_has(file, process, &mappings[i], name, is_function, debug, ret_vaddr))
				return &mappings[i];
	return NULL;
}

static void keep_file(struct event_sites *ret)
{
	ret->has_file = true;
	snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%d", ret->file.path_fd);
}

static int open_any(struct event_sites *ret, const char *function, pid_t pid, struct buf *why)
{
	const struct mapping *mapping = NULL;
	const struct process *process;
	struct process_table table;
	uint64_t vaddr;

	process_table_init(&table);
	process = pid && function ? process_get(&table, pid, 0) : NULL;
	if (process)
		mapping = open_first(&ret->file, process, function, true, &vaddr);
	if (mapping) {
		ret->place = strdup(mapping->path);
		keep_file(ret);
	} else {
		buf_printf(why, "no file that the process has mapped has a function '%s'", function ? function : "");
	}
	process_table_release(&table);
	return mapping ? 0 : -ENOENT;
}

/* Finds the file, and keeps it open. */
static int open_file(struct event_sites *ret, const char *name, const struct collector_options *options,
		     struct buf *why)
{
	int err = strchr(name, '/') ? find_path(ret, name) : find_mapped(ret, first_target(options), name);
	int fd;

	if (err)
		return explain_file(name, err, why);
	keep_file(ret);
	fd = S_ISREG(ret->file.st.st_mode) ? target_file_read(&ret->file, CHARGE_OWN(ret->file.pid), 0) : -EINVAL;
	return fd < 0 ? explain_file(name, fd, why) : 0;
}

/* ---- one function for each source ---- */

static int find_tracepoint(struct event_sites *ret, const struct event *event, struct event_perf *perf,
			   struct buf *why)
{
	const struct event_place *place = &event->place;
	IO_FD(folder) = tracefs_open(why);
	int err = folder < 0 ? folder
			     : tracefs_find(folder, place->file, place->name, place->field, &perf->config, &ret->field,
					    why);

	perf->type = PERF_TYPE_TRACEPOINT;
	ret->no_kernel_stack = !strcmp(place->file, "syscalls");
	return err;
}

/* The kernel looks up the function's name. */
static int find_kprobe(const struct event *event, struct event_perf *perf, struct buf *why)
{
	int type = pmu_type("kprobe");

	if (type < 0)
		return buf_explain(why, -ENOTSUP,
				   "this kernel was built without kprobes (CONFIG_KPROBE_EVENTS): "
				   "tracepoints and uprobes do not need them");
	perf->type = (uint32_t)type;
	perf->config = event->place.at_return;
	perf->config1 = (uintptr_t)event->place.name;
	perf->config2 = event->place.offset;
	return 0;
}

static int find_function(const struct event_sites *sites, const struct elf_segments *segments,
			 const struct event_place *place, uint64_t *ret_offset, struct buf *why)
{
	BUF(nearest);
	const struct charge *charge = CHARGE_OWN(sites->file.pid);
	uint64_t vaddr = 0;
	int err = parsed_symbol(charge, &sites->file, place->name, true, &vaddr, &nearest);

	if (err && sites->place && debug_file_symbol(charge, &sites->file, sites->place, place->name, true, &vaddr))
		err = 0;
	if (err)
		buf_printf(why, "%s has no function '%s' in its symbols%s%s%s", place->file, place->name,
			   nearest.len ? "; did you mean " : ": give an offset in the file, +0x…", nearest.data,
			   nearest.len ? "?" : "");
	else if (!elf_segments_offset(segments, vaddr, ret_offset))
		return buf_explain(why, -ENOENT, "'%s' of %s has no code in the file", place->name, place->file);
	return err;
}

/* The kernel would write a breakpoint into data, too, which programs then read. */
static int find_uprobe(struct event_sites *ret, const struct event_place *place, const struct elf_segments *segments,
		       struct event_perf *perf, struct buf *why)
{
	uint64_t offset = 0;
	int err = place->name ? find_function(ret, segments, place, &offset, why) : 0;

	perf->config = place->at_return;
	perf->config2 = offset + place->offset;
	if (!err && !elf_segments_is_code(segments, perf->config2))
		return buf_explain(why, -EINVAL, "%s has no code at the offset 0x%lx", place->file,
				   (unsigned long)perf->config2);
	return err ? err : vec_push(&ret->list, *perf);
}

static int find_usdt(struct event_sites *ret, const struct event_place *place, struct event_perf *perf,
		     struct buf *why)
{
	struct elf_probes probes = {0};
	BUF(others);
	int err = parsed_probes(CHARGE_OWN(ret->file.pid), &ret->file, place->field, place->name, &probes, &others);

	if (err == 0)
		err = buf_explain(why, -ENOENT, "%s has no static probe %s:%s%s%s", place->file, place->field,
				  place->name, others.len ? "; it has " : ", nor any other", others.data);
	for (size_t i = 0; err >= 0 && i < probes.list.len; i++) {
		perf->config = probes.list.items[i].counter << PROBE_COUNTER_SHIFT;
		perf->config2 = probes.list.items[i].offset;
		err = vec_push(&ret->list, *perf);
	}
	vec_release(&probes.list);
	return err < 0 ? err : 0;
}

static int find_in_file(struct event_sites *ret, const struct event *event, const struct collector_options *options,
			struct event_perf *perf, struct buf *why)
{
	int type = pmu_type("uprobe"), err;
	struct elf_segments segments = {0};

	if (type < 0)
		return buf_explain(why, -ENOTSUP,
				   "this kernel was built without uprobes (CONFIG_UPROBE_EVENTS): "
				   "tracepoints do not need them");
	if (strcmp(event->place.file, ANY_FILE))
		err = open_file(ret, event->place.file, options, why);
	else
		err = open_any(ret, event->place.name, first_target(options), why);
	if (err)
		return err;
	err = parsed_segments(&segments, CHARGE_OWN(ret->file.pid), &ret->file);
	if (err)
		return explain_file(event->place.file, err, why);
	perf->type = (uint32_t)type;
	perf->config1 = (uintptr_t)ret->path;
	err = event->place.source == EVENT_USDT ? find_usdt(ret, &event->place, perf, why)
						: find_uprobe(ret, &event->place, &segments, perf, why);
	vec_release(&segments);
	return err;
}

/* ---- addresses of breakpoints ---- */

static int find_in_process(pid_t pid, const char *name, uint64_t *ret)
{
	const struct mapping *mapping, *first = NULL, *end;
	const struct process *process;
	struct elf_segments segments = {0};
	struct process_table table;
	struct target_file file;
	uint64_t vaddr, start;

	*ret = 0;
	process_table_init(&table);
	process = process_get(&table, pid, 0);
	if (process)
		first = open_first(&file, process, name, false, &vaddr);
	if (first && !parsed_segments(&segments, CHARGE_OWN(pid), &file)) {
		end = process->maps.list.items + process->maps.list.len;
		for (mapping = first; !*ret && mapping < end && !strcmp(mapping->path, first->path); mapping++)
			if (elf_segments_vaddr(&segments, mapping->offset, &start))
				*ret = mapping->start - start + vaddr;
	}
	vec_release(&segments);
	if (first)
		target_file_release(&file);
	process_table_release(&table);
	return *ret ? 0 : -ENOENT;
}

static int find_in_kernel(const char *name, uint64_t *ret)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[KALLSYMS_LINE], symbol[KALLSYMS_LINE];
	uint64_t address = 0;

	*ret = 0;
	while (file && !*ret && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx %*c %1023s", &address, symbol) == 2 && !strcmp(symbol, name))
			*ret = address;
	if (file)
		fclose(file);
	return *ret ? 0 : -ENOENT;
}

#define PAGE_LEAST 4096ul
#define ADDRESS_BITS 57 /* of the largest x86-64 and aarch64 address spaces, with the bit that the kernel's have set */

/* Returns true if no program nor the kernel can have memory there. */
static bool is_nowhere(uint64_t address)
{
	uint64_t half = (uint64_t)((int64_t)address >> (ADDRESS_BITS - 1));

	return address < PAGE_LEAST || address >= -PAGE_LEAST || (half && half != UINT64_MAX);
}

static int find_breakpoint(const struct event *event, const struct collector_options *options,
			   struct event_perf *perf, struct buf *why)
{
	const struct event_place *place = &event->place;
	pid_t pid = first_target(options);
	uint64_t address = 0;

	if (place->name && (!pid || find_in_process(pid, place->name, &address)) &&
	    find_in_kernel(place->name, &address)) {
		return buf_explain(why, -ENOENT, "%s has no variable or function '%s': %s",
				   pid ? "the process" : "the kernel", place->name,
				   pid ? "give its address" : "names of a process need -p");
	}
	perf->config1 = address + place->offset;
	if (is_nowhere(perf->config1))
		return buf_explain(why, -EINVAL, "%s: no program can have memory at 0x%lx", event->name,
				   (unsigned long)perf->config1);
	if (!probe_has_breakpoints())
		return buf_explain(why, -EOPNOTSUPP,
				   "%s: this machine has no breakpoints that work, as some virtual machines",
				   event->name);
	return 0;
}

/* ---- all sources ---- */

static int find(struct event_sites *ret, const struct event *event, const struct collector_options *options,
		struct buf *why)
{
	struct event_perf perf = event->perf;
	int err = 0;

	*ret = (struct event_sites){0};
	switch (event->place.source) {
	case EVENT_PMU:
		err = pmu_find(&perf, event->place.file, event->place.name, why);
		break;
	case EVENT_BREAKPOINT:
		err = find_breakpoint(event, options, &perf, why);
		break;
	case EVENT_TRACEPOINT:
		err = find_tracepoint(ret, event, &perf, why);
		break;
	case EVENT_KPROBE:
		err = find_kprobe(event, &perf, why);
		break;
	case EVENT_UPROBE:
	case EVENT_USDT:
		return find_in_file(ret, event, options, &perf, why);
	default:
		if (event->program != DUET_PROGRAM_PERF)
			return 0;
	}
	return err ? err : vec_push(&ret->list, perf);
}

static void release(struct event_sites *sites)
{
	if (sites->has_file)
		target_file_release(&sites->file);
	free(sites->place);
	vec_release(&sites->list);
	*sites = (struct event_sites){0};
}

static const struct event_perf *tracepoint(const struct event_sites *sites)
{
	return sites->list.len && sites->list.items[0].type == PERF_TYPE_TRACEPOINT ? &sites->list.items[0] : NULL;
}

static bool is_same(const struct event_sites *a, const struct event_sites *b)
{
	return tracepoint(a) && tracepoint(b) && tracepoint(a)->config == tracepoint(b)->config;
}

/* A probe in a file stops each thread that reaches it: where the processes are known, others are left alone. */
static int open_probes(const struct event_sites *sites, struct perf_events *ret,
		       const struct collector_options *options)
{
	static const pid_t everybody = -1;
	size_t count = options->targets ? options->target_count : 0;
	bool is_for_all = !count || options->follow_forks || count * sites->list.len > PROBES_BY_PROCESS;

	return perf_events_open_probes(ret, sites->list.items, sites->list.len,
				       is_for_all ? &everybody : options->targets, is_for_all ? 1 : count,
				       sites->file.path_fd);
}

static int open_sites(const struct event_sites *sites, const struct event_spec *spec,
		     const struct collector_options *options, struct perf_events *ret, struct buf *why)
{
	const struct event *event = spec->event;
	bool in_file = event->place.source == EVENT_UPROBE || event->place.source == EVENT_USDT;

	for (size_t i = 0; i < (in_file ? 1 : sites->list.len); i++) {
		const struct event_perf *perf = &sites->list.items[i];
		int err;

		if (event->program == DUET_PROGRAM_PERF)
			err = perf_events_open(ret, perf, programs_perf_period(spec), options->asked->only_cpu);
		else if (in_file)
			err = open_probes(sites, ret, options);
		else
			err = perf_events_open_hook(ret, perf);
		if (err < 0) {
			perf_events_explain(event, perf, err, why);
			return err;
		}
	}
	return 0;
}

/* ---- the family ---- */

/* Returns true if a program samples several events, so that it needs to know which one ticked. */
static bool uses_index(const struct event_list *events)
{
	return event_list_count(events, DUET_PROGRAM_PERF) > 1 || event_list_count(events, DUET_PROGRAM_PROBE) > 1 ||
	       event_list_count(events, DUET_PROGRAM_TRACEPOINT) > 1;
}

/* Without the rights that BPF needs, a place cannot be looked up, and would look as if it did not exist. */
static int check_rights(const struct event_list *events, struct buf *why)
{
	for (size_t i = 0; i < events->len; i++)
		if (events->items[i].event->place.source != EVENT_COMPLETE)
			return probe_explain(why) ? -EPERM : 0;
	return 0;
}

/* Refuses a tracepoint that is listed twice: the kernel runs a program once at each. */
static int check_twice(const struct family *family, size_t index, struct buf *why)
{
	const struct ticks *ticks = family->state;

	for (size_t i = 0; i < index; i++)
		if (is_same(&ticks->sites[i], &ticks->sites[index]))
			return buf_explain(why, -EINVAL, "%s and %s are one tracepoint: give one of them",
					   family->events->items[i].event->name,
					   family->events->items[index].event->name);
	return 0;
}

static int ticks_check(struct family *family, const struct collector_options *options, struct buf *why)
{
	struct ticks *ticks = family->state;
	int err;

	if (uses_index(family->events) && !probe_has_attach_cookie())
		return buf_explain(why, -ENOTSUP,
				   "several events of this kind in one recording need Linux 5.15: give one of them");
	err = check_rights(family->events, why);
	for (size_t i = 0; !err && i < family->events->len; i++) {
		err = find(&ticks->sites[i], family->events->items[i].event, options, why);
		if (!err)
			err = check_twice(family, i, why);
	}
	return err;
}

static int ticks_prepare(struct family *family, const struct collector_options *options)
{
	const struct event_list *events = family->events;
	const struct ticks *ticks = family->state;
	struct duet_bpf *bpf = family->programs->bpf;
	struct duet_config *config = &bpf->rodata->duet_config;
	int err = 0;

	if (family->programs->uses_cookie)
		family->programs->of[DUET_PROGRAM_PERF] = bpf->progs.perf_cookie;
	config->uses_index = uses_index(events);
	for (size_t i = 0; i < events->len; i++) {
		config->events[i].field_offset = (uint16_t)ticks->sites[i].field.offset;
		config->events[i].field_bytes = (uint8_t)ticks->sites[i].field.bytes;
		config->events[i].field_is_signed = ticks->sites[i].field.is_signed;
		config->events[i].no_kernel_stack = ticks->sites[i].no_kernel_stack;
	}
	/* A perf event interrupts only programs of other kinds, so a second level is needed for those only. */
	if (event_list_count(events, DUET_PROGRAM_PERF) + event_list_count(events, DUET_PROGRAM_NONE) == events->len) {
		err = bpf_map__set_max_entries(bpf->maps.scratch, 1);
		if (!err)
			err = bpf_map__set_max_entries(bpf->maps.unwind_known, 1);
	}
	return err;
}

static int ticks_open(struct family *family, const struct collector_options *options, struct buf *why)
{
	struct ticks *ticks = family->state;
	int err = 0;

	for (size_t i = 0; !err && i < family->events->len; i++)
		err = open_sites(&ticks->sites[i], &family->events->items[i], options, &ticks->perf[i], why);
	return err;
}

static const struct bpf_program *program_of(const struct family *family, size_t event)
{
	return family->programs->of[family->events->items[event].event->program];
}

static uint64_t index_of(const struct family *family, size_t event)
{
	return uses_index(family->events) ? event : 0;
}

static int ticks_attach(struct family *family)
{
	struct ticks *ticks = family->state;
	int err = 0;

	for (size_t i = 0; !err && i < family->events->len; i++) {
		const uint64_t cookie = index_of(family, i);

		if (ticks->perf[i].fds.len)
			err = perf_events_start(&ticks->perf[i], program_of(family, i), &cookie, 1);
	}
	return err;
}

/* Events of a CPU that has come online do not run there yet. */
static void ticks_renew_cpu(struct family *family, int cpu)
{
	struct ticks *ticks = family->state;

	for (size_t i = 0; i < family->events->len; i++) {
		int err = perf_events_renew(&ticks->perf[i], cpu, program_of(family, i), index_of(family, i));

		if (err < 0)
			log_debug("perf event on CPU %d, which has come: %s", cpu, strerrordesc_np(-err));
	}
}

static void ticks_detach(struct family *family)
{
	struct ticks *ticks = family->state;

	for (size_t i = 0; i < family->events->len; i++)
		perf_events_stop(&ticks->perf[i]);
}

static void ticks_release(struct family *family)
{
	struct ticks *ticks = family->state;

	for (size_t i = 0; i < family->events->len; i++) {
		perf_events_release(&ticks->perf[i]);
		release(&ticks->sites[i]);
	}
}

const struct bpf_family family_ticks = {
	.programs = FAMILY_PROGRAM(PERF) | FAMILY_PROGRAM(TRACEPOINT) | FAMILY_PROGRAM(PROBE),
	.state_bytes = sizeof(struct ticks),
	.check = ticks_check,
	.prepare = ticks_prepare,
	.open = ticks_open,
	.attach = ticks_attach,
	.renew_cpu = ticks_renew_cpu,
	.detach = ticks_detach,
	.release = ticks_release,
};
