/* SPDX-License-Identifier: MIT */
/* Time off CPU: the programs that see threads go to sleep, return, and wake each other. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/log.h"
#include "collect/collector.h"
#include "collect/kernel/probe.h"
#include "collect/kernel/returns.h"
#include "collect/programs.h"
#include "collect/sleepers/sleepers.h"
#include "event/options.h"

#include "duet.skel.h"

/* threads of the host, or of targets, whose state is kept in a hash; a row takes 200 bytes */
#define SLEEPERS_OF_HOST (128u << 10)
#define SLEEPERS_OF_TARGETS (32u << 10)
#define MORE_THREADS 1024 /* those that start between the opening and the start of the recording */
#define WAKERS 7

/* The links, in the order in which they are destroyed. */
enum { SWITCHES, FALLBACK, EARLY, THREAD_EXIT, FIRST_WAKER };

_Static_assert(FIRST_WAKER + WAKERS <= FAMILY_LINKS, "one link each");

struct sleeps {
	struct returns returns;
	struct sleepers *sleepers;
};

/* Chooses the hooks for sleeps. Refuses sleeps if there is no hook for them, or not the one that was asked for. */
static int sleeps_check(struct family *family, const struct collector_options *options, struct buf *why)
{
	struct sleeps *sleeps = family->state;

	if (options->asked->wakers && !probe_has_wakers())
		return buf_explain(
			why, -ENOTSUP,
			"--wakers finds interrupts by the names of the kernel's functions, which are hidden: "
			"see `duet check`, or leave it out");
	sleeps->returns = returns_choose(options->asked->sleep_hook);
	if (sleeps->returns.first)
		return 0;
	if (options->asked->sleep_hook)
		buf_printf(why, "this kernel has no hook %s: leave out --off-cpu-hook",
			   return_name(options->asked->sleep_hook));
	else
		buf_add_str(why, "offcpu, wall and wakeup need a hook of the kernel, see `duet check`: "
				 "give -e context-switches, which counts the sleeps");
	return -ENOTSUP;
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

/* The program that notes senders is attached last: the others know then what it has to know. */
static int use_wakers(struct family *family)
{
	const struct duet_bpf *bpf = family->programs->bpf;
	struct bpf_program *const programs[WAKERS] = {
		probe_has_preempt_count() ? bpf->progs.wakeup_waking : bpf->progs.wakeup_waking_plain,
		bpf->progs.packets_sent,
		bpf->progs.packets_arrive,
		bpf->progs.packets_delivered,
		bpf->progs.packets_softirq_enter,
		bpf->progs.packets_softirq_exit,
		bpf->progs.wakeup_irq,
	};
	int err = 0;

	for (size_t i = 0; !err && i < WAKERS; i++)
		err = family_use(family, FIRST_WAKER + i, programs[i], NULL);
	return err;
}

/* Chooses the programs that sleeps need in addition. Those that are not attached here are attached later. */
static int choose(struct family *family)
{
	const struct returns *returns = &((const struct sleeps *)family->state)->returns;
	const struct duet_bpf *bpf = family->programs->bpf;
	/* NULL: not needed */
	struct bpf_program *const later[] = {
		bpf->progs.offcpu_look,
		bpf->progs.offcpu_report_edge,
		return_program(bpf, returns->fallback),
		return_early_program(bpf, returns->first),
		return_early_program(bpf, returns->fallback),
	};
	int err = family_use(family, SWITCHES, bpf->progs.offcpu_switch, NULL);

	if (!err && bpf->rodata->duet_config.state_by_tid)
		err = family_use(family, THREAD_EXIT, bpf->progs.offcpu_exit, NULL);
	for (size_t i = 0; !err && i < sizeof(later) / sizeof(*later); i++)
		if (later[i])
			err = bpf_program__set_autoload(later[i], true);
	family->programs->of[DUET_PROGRAM_OFFCPU] = return_program(bpf, returns->first);
	return err;
}

static int size(const struct family *family, const struct collector_options *options)
{
	const struct duet_bpf *bpf = family->programs->bpf;
	const struct duet_config *config = (const void *)&bpf->rodata->duet_config;
	int err = 0;

	if (family->is_used)
		err = bpf_map__set_max_entries(bpf->maps.offcpu_parked, threads_now() + MORE_THREADS);
	if (!err && (!family->is_used || config->sleep_return == DUET_RETURN_SWITCH_EXIT))
		err = bpf_map__set_max_entries(bpf->maps.offcpu_kernels, 1);
	return err ? err
		   : programs_keep_threads(family->programs, bpf->maps.offcpu_threads, bpf->maps.offcpu_tids,
					   !family->is_used   ? 0
					   : options->targets ? SLEEPERS_OF_TARGETS
							      : SLEEPERS_OF_HOST);
}

static int sleeps_prepare(struct family *family, const struct collector_options *options)
{
	const struct sleeps *sleeps = family->state;
	const struct duet_bpf *bpf = family->programs->bpf;
	struct duet_config *config = &bpf->rodata->duet_config;
	int err = 0;

	config->sleep_return = (uint8_t)sleeps->returns.first;
	if (family->is_used)
		err = choose(family);
	if (!err && options->asked->wakers)
		err = use_wakers(family);
	if (!err && !options->asked->wakers)
		err = bpf_map__set_autocreate(bpf->maps.irqs, false);
	if (!err && !options->asked->wakers)
		err = bpf_map__set_autocreate(bpf->maps.packets, false);
	return err ? err : size(family, options);
}

static int sleeps_open(struct family *family, const struct collector_options *options, struct buf *why)
{
	struct sleeps *sleeps = family->state;

	return sleepers_open(&sleeps->sleepers, family->programs->bpf, options->user_depth);
}

static int attach_early(struct family *family, enum duet_return hook)
{
	const struct bpf_program *early = return_early_program(family->programs->bpf, hook);

	if (early)
		family->links[EARLY] = bpf_program__attach(early);
	return early && !family->links[EARLY] ? -errno : 0;
}

/* Attaches the sampling program first, so that each sleep that the other program has seen is sampled. */
static int sleeps_attach(struct family *family)
{
	const struct sleeps *sleeps = family->state;
	const struct duet_bpf *bpf = family->programs->bpf;
	uint8_t event = bpf->rodata->duet_config.event_of[DUET_PROGRAM_OFFCPU];
	int err = return_attach(&family->of_events[event], bpf, sleeps->returns.first);

	bpf->bss->duet_started_ns = clock_monotonic_ns();
	if (!err)
		err = family_attach(family);
	return err ? err : attach_early(family, sleeps->returns.first);
}

/*
 * Attaches the program for threads that take no sample at the hook in use, once BPF has met one. It costs every switch
 * or system call of the host, so it is not attached before.
 */
static void sleeps_step(struct family *family)
{
	const struct sleeps *sleeps = family->state;
	struct duet_bpf *bpf = family->programs->bpf;
	enum duet_return fallback = sleeps->returns.fallback;
	int err;

	if (!fallback || family->links[FALLBACK] || !family->links[SWITCHES] || !bpf->bss->duet_needs_fallback_hook)
		return;
	err = return_attach(&family->links[FALLBACK], bpf, fallback);
	if (!err)
		err = attach_early(family, fallback);
	if (!err)
		bpf->bss->duet_fallback_hook = fallback;
	else
		log_debug("%s: %s", return_name(fallback), strerrordesc_np(-err));
}

static void sleeps_release(struct family *family)
{
	const struct sleeps *sleeps = family->state;

	sleepers_close(sleeps->sleepers);
}

struct sleepers *collector_sleepers(struct collector *collector)
{
	return collector ? ((const struct sleeps *)collector_family(collector, FAMILY_sleeps)->state)->sleepers : NULL;
}

const struct bpf_family family_sleeps = {
	.programs = FAMILY_PROGRAM(OFFCPU),
	.state_bytes = sizeof(struct sleeps),
	.maps = {
		{FAMILY_MAP(offcpu_tids), 0, 4},
		{FAMILY_MAP(offcpu_parked), 0, 2},
		{FAMILY_MAP(offcpu_kernels), 0, 2},
	},
	.check = sleeps_check,
	.prepare = sleeps_prepare,
	.open = sleeps_open,
	.attach = sleeps_attach,
	.step = sleeps_step,
	.release = sleeps_release,
};
