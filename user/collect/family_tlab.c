/* SPDX-License-Identifier: MIT */
/*
 * Heap buffers: probes of two functions of libjvm.so in each JVM whose allocations BPF samples. JVMs come and go while
 * the recording runs.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/kernel/probe.h"
#include "collect/kernel/perf_sources.h"
#include "collect/perf_events.h"
#include "collect/programs.h"
#include "proc/maps.h"
#include "proc/process.h"
#include "sym/debug_file.h"
#include "sym/parsed_file.h"
#include "sym/target_file.h"

#include "duet.skel.h"

#define TLAB_THREADS (16u << 10) /* threads that allocate, a row takes 130 bytes */
#define FUNCTIONS 2

struct tlab_probe {
	pid_t pid;
	struct target_file file;
	bool has_file;
	char path[32]; /* of the file's descriptor */
	uint64_t vaddrs[FUNCTIONS];
	uint64_t cookies[FUNCTIONS];
	struct event_perf perf[FUNCTIONS];
	struct perf_events events;
};

struct tlab {
	struct vec(struct tlab_probe *) probes;
	bool is_wanted; /* collector_options.probes_tlabs */
	bool has_started;
	bool has_given_up; /* the kernel has not set a probe in time: no other is tried, as each would be waited for */
};

/* AllocTracer's functions (src/hotspot/share/gc/shared/allocTracer.hpp), mangled; JDK 8 and 9, then later ones. */
static const char *const functions[FUNCTIONS][2] = {
	{"_ZN11AllocTracer33send_allocation_in_new_tlab_event", "_ZN11AllocTracer27send_allocation_in_new_tlab"},
	{"_ZN11AllocTracer34send_allocation_outside_tlab_event", "_ZN11AllocTracer28send_allocation_outside_tlab"},
};

/* Their arguments: a class, since JDK 8u262 and 11 the object, one or two sizes, since then the thread. */
static const struct arguments {
	const char *before, *after; /* the sizes */
	bool has_object;
} arguments[] = {
	{"E11KlassHandle", "", false},
	{"EP5Klass", "", false},
	{"E11KlassHandleP8HeapWord", "P6Thread", true},
	{"EP5KlassP8HeapWord", "P6Thread", true},
	{"EP5KlassP8HeapWord", "P10JavaThread", true},
	{"EP5KlassPP12HeapWordImpl", "P6Thread", true},
	{"EP5KlassPP12HeapWordImpl", "P10JavaThread", true},
};

/* Finds one of the functions. Returns its cookie and address, or 0. */
static uint64_t find_function(const struct charge *charge, const struct target_file *file, bool is_new,
			      uint64_t *ret_vaddr)
{
	BUF(names);
	const struct arguments *of;
	uint32_t size_at;
	int found;

	for (size_t i = 0; i < 2 * sizeof(arguments) / sizeof(*arguments); i++) {
		of = &arguments[i / 2];
		buf_printf(&names, "%s%s%s%s%s", i ? "\n" : "", functions[!is_new][i % 2], of->before,
			   is_new ? "mm" : "m", of->after);
	}
	found = parsed_symbol(charge, file, names.data, true, ret_vaddr, NULL);
	if (found < 0 || (size_t)found >= 2 * sizeof(arguments) / sizeof(*arguments))
		return 0;
	of = &arguments[found / 2];
	size_at = 2 + of->has_object + is_new;
	return DUET_TLAB_COOKIE(is_new, size_at, of->after[0] ? size_at + 1 : 0);
}

/* Returns true if this file has the symbols. */
static bool find_functions(void *context, const struct charge *charge, const struct target_file *file)
{
	struct tlab_probe *probe = context;
	bool has_all = true;

	for (int i = 0; has_all && i < FUNCTIONS; i++) {
		probe->cookies[i] = find_function(charge, file, !i, &probe->vaddrs[i]);
		has_all = probe->cookies[i] != 0;
	}
	return has_all;
}

/* Finds the functions in libjvm.so or, if that is stripped, in its debug file. */
static bool find_in_files(struct tlab_probe *probe, const struct charge *charge, const char *path)
{
	struct elf_identity identity;

	return find_functions(probe, charge, &probe->file) ||
	       (!parsed_identity(&identity, charge, &probe->file) &&
		debug_file_find(&identity, charge, &probe->file, path, find_functions, probe));
}

/* Both functions are code of libjvm.so itself, whichever file names them. */
static bool set_places(struct tlab_probe *probe, const struct charge *charge)
{
	struct elf_segments segments = {0};
	int type = pmu_type("uprobe");
	bool ok = type >= 0 && !parsed_segments(&segments, charge, &probe->file);

	for (int i = 0; ok && i < FUNCTIONS; i++) {
		probe->perf[i] = (struct event_perf){.type = (uint32_t)type, .config1 = (uintptr_t)probe->path};
		ok = elf_segments_offset(&segments, probe->vaddrs[i], &probe->perf[i].config2);
	}
	vec_release(&segments);
	return ok;
}

static int find_places(struct tlab_probe *probe, const struct charge *charge, const struct process *process,
		       struct buf *why)
{
	const struct mapping *mapping = maps_libjvm(&process->maps);
	int err = mapping ? target_file_find_mapping(&probe->file, charge, process, mapping) : -ENOENT, fd;

	if (!err) {
		probe->has_file = true;
		snprintf(probe->path, sizeof(probe->path), "/proc/self/fd/%d", probe->file.path_fd);
	}
	fd = err ? err : target_file_read(&probe->file, charge, 0);
	if (fd < 0)
		return buf_explain(why, fd, "its libjvm.so cannot be read: %s", strerror(-fd));
	if (!find_in_files(probe, charge, mapping->path))
		return buf_explain(why, -ENOENT,
				   "its libjvm.so has no symbols of HotSpot's AllocTracer: "
				   "install the JDK's debug symbols (openjdk-8-dbg)");
	if (!set_places(probe, charge))
		return buf_explain(why, -ENOTSUP, "this kernel was built without uprobes (CONFIG_UPROBE_EVENTS)");
	return 0;
}

static void free_probe(struct tlab_probe *probe)
{
	if (!probe)
		return;
	perf_events_release(&probe->events);
	if (probe->has_file)
		target_file_release(&probe->file);
	free(probe);
}

static int start(struct tlab_probe *probe, const struct bpf_program *program)
{
	return perf_events_start(&probe->events, program, probe->cookies, FUNCTIONS);
}

static int explain_refused(int err, struct buf *why)
{
	return buf_explain(why, err, "the kernel refuses probes in its libjvm.so: %s", strerror(-err));
}

static int set(struct tlab *tlab, struct tlab_probe *probe, const struct process *process, struct buf *why)
{
	int err;

	if (tlab->has_given_up)
		err = -ETIMEDOUT;
	else
		err = perf_events_open_probes(&probe->events, probe->perf, FUNCTIONS, &process->pid, 1,
					      probe->file.path_fd);
	tlab->has_given_up |= err == -ETIMEDOUT;
	if (err == -ETIMEDOUT)
		buf_add_str(why, "the kernel did not set a probe in time: a process that maps libjvm.so holds it up");
	return !err || err == -ETIMEDOUT ? err : explain_refused(err, why);
}

/* Sets the probes in a process. Once the recording has started, they sample at once. */
static int add(struct family *family, const struct process *process, struct buf *why)
{
	struct tlab *tlab = family->state;
	struct tlab_probe *probe = calloc(1, sizeof(*probe));
	int err = probe ? vec_reserve(&tlab->probes, tlab->probes.len + 1) : -ENOMEM;
	struct charge charge;

	if (err) {
		free(probe);
		return buf_explain(why, err, "out of memory");
	}
	probe->pid = process->pid;
	if (charge_begin(&charge, process)) {
		err = find_places(probe, &charge, process, why);
		(void)charge_end(&charge);
	} else {
		err = buf_explain(why, -EBUSY, "its user's processes take too long to read");
	}
	if (!err)
		err = set(tlab, probe, process, why);
	if (!err && tlab->has_started) {
		err = start(probe, family->programs->of[DUET_PROGRAM_TLAB]);
		if (err)
			explain_refused(err, why);
	}
	if (err)
		free_probe(probe);
	else
		tlab->probes.items[tlab->probes.len++] = probe;
	return err;
}

int collector_probe_tlabs(struct collector *collector, const struct process *process, struct buf *why)
{
	struct family *family = collector ? collector_family(collector, FAMILY_tlab) : NULL;
	const struct tlab *tlab = family ? family->state : NULL;

	if (!tlab)
		return buf_explain(why, -ENOTSUP,
				   "that takes probes of HotSpot, which need the bpf engine: "
				   "`duet check` says what it needs");
	for (size_t i = 0; i < tlab->probes.len; i++)
		if (tlab->probes.items[i]->pid == process->pid)
			return 0;
	if (tlab->is_wanted)
		return add(family, process, why);
	return buf_explain(why, -ENOTSUP,
			   probe_has_attach_cookie() ? "it was another program when the recording began: give --tlab"
						     : "only probes can sample them, and these need Linux 5.15");
}

static void tlab_drop(struct family *family, pid_t pid)
{
	struct tlab *tlab = family->state;

	for (size_t i = 0; i < tlab->probes.len; i++) {
		if (tlab->probes.items[i]->pid != pid)
			continue;
		free_probe(tlab->probes.items[i]);
		tlab->probes.items[i] = tlab->probes.items[--tlab->probes.len];
		return;
	}
}

static int tlab_prepare(struct family *family, const struct collector_options *options)
{
	struct programs *programs = family->programs;
	struct tlab *tlab = family->state;

	tlab->is_wanted = options->probes_tlabs && probe_has_attach_cookie();
	if (!tlab->is_wanted)
		programs->of[DUET_PROGRAM_TLAB] = NULL;
	return programs_keep_threads(programs, programs->bpf->maps.tlab_states, programs->bpf->maps.tlab_threads,
				     tlab->is_wanted ? TLAB_THREADS : 0);
}

/* Threads that are younger than the recording are known from their first byte on. */
static int tlab_attach(struct family *family)
{
	struct duet_bpf *bpf = family->programs->bpf;
	struct tlab *tlab = family->state;
	int err = 0;

	if (!bpf->bss->duet_started_ns)
		bpf->bss->duet_started_ns = clock_monotonic_ns();
	tlab->has_started = true;
	for (size_t i = 0; !err && i < tlab->probes.len; i++) {
		err = start(tlab->probes.items[i], family->programs->of[DUET_PROGRAM_TLAB]);
		if (err == -ESRCH) /* the process has ended */
			err = 0;
	}
	return err;
}

/* Removes all probes. */
static void tlab_detach(struct family *family)
{
	struct tlab *tlab = family->state;

	for (size_t i = 0; i < tlab->probes.len; i++)
		free_probe(tlab->probes.items[i]);
	vec_release(&tlab->probes);
}

const struct bpf_family family_tlab = {
	.programs = FAMILY_PROGRAM(TLAB),
	.state_bytes = sizeof(struct tlab),
	.maps = {{FAMILY_MAP(tlab_threads), 0, 1}},
	.prepare = tlab_prepare,
	.attach = tlab_attach,
	.drop = tlab_drop,
	.detach = tlab_detach,
};
