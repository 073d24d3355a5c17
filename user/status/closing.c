/* SPDX-License-Identifier: MIT */

#include "base/clock.h"
#include "base/log.h"
#include "event/options.h"
#include "join/sink.h"
#include "limits/overhead.h"
#include "profile/profile.h"
#include "status/report.h"
#include "writers/text/headline.h"

#define FEW_SAMPLES 100 /* below that, a share may be wrong by a fifth and more */
#define MANY_SAMPLES 1000 /* what the advice aims at */
#define MOST_TIMES 100 /* as often; more would cost too much for a program that hardly runs */
#define MOST_ESTIMATED 2 /* percent of the stacks of JVMs that may be estimates before it is said */
#define IDLE_PART 20 /* it hardly runs: it takes less of one CPU than one part in this many */

static void add_loss(void *context, const char *name, const char *text, uint64_t count)
{
	headline_add_loss(context, count, text);
}

void closing_now(const struct report *report, uint64_t now_ns, struct headline *ret)
{
	double all_ns = (double)(now_ns - report->command_ns) * (double)report->overhead->cpus;
	struct overhead_cost cost;

	overhead_cost(report->overhead, &cost);
	*ret = (struct headline){
		.samples = report->outcomes->samples,
		.duration_ns = now_ns - report->started_ns,
		.overhead = all_ns > 0 ? 100 * (double)overhead_sum(&cost) / all_ns : -1,
	};
	report_each_loss(report, add_loss, ret);
}

void closing_progress(const struct report *report)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct headline now;
	BUF(text);

	closing_now(report, now_ns, &now);
	buf_printf(&text, "%.0f ", (double)now.duration_ns / NS_PER_SEC);
	if (report->options->duration_ns)
		buf_printf(&text, "of %.0f ", (double)report->options->duration_ns / NS_PER_SEC);
	buf_printf(&text, "s, Ctrl-C ends; %lu samples", now.samples);
	if (now.losses[HEADLINE_LOST].count)
		buf_printf(&text, ", %lu lost", now.losses[HEADLINE_LOST].count);
	log_progress("%s", text.data);
}

struct closing_seen {
	const struct event_list *events;
	struct closing_count counts[DUET_MAX_EVENTS];
};

static int count_event(void *context, const struct profile_sample *sample)
{
	struct closing_seen *seen = context;
	struct closing_count *count = &seen->counts[sample->event];

	count->all += sample->count;
	if (sample->event < seen->events->len &&
	    sample->weight > sample->count * seen->events->items[sample->event].interval)
		count->whole += sample->count;
	return 0;
}

/* A name that nothing has, and a method that nobody calls, look alike: the JVM may load its class any time. */
static void report_uncalled(const struct report *report, const struct closing_count *counts)
{
	for (size_t i = 0; i < report->options->events.len; i++)
		if (event_is_of_methods(report->options->events.items[i].event) && !counts[i].all)
			log_info("%s: no call was recorded: there is no such method, or nobody called it",
				 report->options->events.items[i].event->name);
}

/* Returns the largest of 1, 2, 5, 10, 20 … that is not above the number, but at least 1. */
static uint64_t round_down(uint64_t number)
{
	uint64_t unit = 1;

	while (number / unit >= 10)
		unit *= 10;
	return (number / unit >= 5 ? 5 : number / unit >= 2 ? 2 : 1) * unit;
}

uint64_t closing_interval(const struct event_spec *spec, uint64_t count, bool is_limited)
{
	uint64_t least = spec->event->least_interval, interval, times = MANY_SAMPLES / (count ? count : 1);

	if (is_limited && spec->event->perf.is_clock && least < OVERHEAD_TICK_MIN_NS)
		least = OVERHEAD_TICK_MIN_NS;
	interval = spec->interval / (times < MOST_TIMES ? times : MOST_TIMES);
	if (spec->event->unit == EVENT_BYTES && !spec->event->counts_calls && interval >= 1024)
		interval = round_down(interval >> 10) << 10;
	else
		interval = round_down(interval);
	return interval < least ? least : interval;
}

uint64_t closing_given(const struct event_spec *spec, const struct closing_count *count, uint64_t shorter)
{
	return count->whole + (count->all - count->whole) * spec->interval / shorter;
}

/* Names a shorter interval that gives enough samples. Waits longer than theirs are all there, and stay few. */
static void report_few(const struct report *report, const struct closing_count *counts, uint64_t all)
{
	BUF(interval);

	for (size_t i = 0; all && all < FEW_SAMPLES && i < report->options->events.len; i++) {
		const struct event_spec *spec = &report->options->events.items[i];
		uint64_t shorter = closing_interval(spec, counts[i].all, report->overhead->pace.max_percent > 0);
		uint64_t given = closing_given(spec, &counts[i], shorter);

		if (!counts[i].all || shorter >= spec->interval || given < FEW_SAMPLES)
			continue;
		buf_add_str(&interval, report->options->events.len > 1 ? "-e " : "-i ");
		if (report->options->events.len > 1)
			buf_printf(&interval, "%s=", spec->event->name);
		event_interval_text(spec->event, shorter, &interval);
		log_info("%lu sample%s too few for shares that can be trusted: %s gives about %lu", all,
			 all == 1 ? " is" : "s are", interval.data, given);
		return;
	}
}

/* A program that hardly runs needs another event. */
static bool report_idle(const struct report *report, uint64_t all)
{
	const struct event_spec *spec = &report->options->events.items[0];
	uint64_t duration_ns = report->profile->end_ns - report->profile->start_ns;

	if (report->options->events.len != 1 || !spec->event->perf.is_clock || spec->event->also_shows ||
	    all >= FEW_SAMPLES || duration_ns < NS_PER_SEC || all * spec->interval * IDLE_PART >= duration_ns)
		return false;
	log_info("it hardly used the CPU: -e wall shows what its threads wait for");
	return true;
}

/* Which methods are inlined where, the compilers record only if they are asked to. */
static void report_estimated(const struct report *report)
{
	const struct outcomes *outcomes = report->outcomes;

	if (outcomes->unrecorded * 100 > outcomes->jvm_samples * MOST_ESTIMATED)
		log_info("the inlined methods in %lu %% of the JVMs' stacks are estimates: with java "
			 "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints they are exact",
			 outcomes->unrecorded * 100 / outcomes->jvm_samples);
}

static void report_next(const struct report *report)
{
	struct closing_seen seen = {.events = &report->options->events};
	uint64_t all = report->profile->samples.count;

	if (report->options->window_ns)
		return;
	timeline_each(&report->profile->samples, count_event, &seen);
	report_uncalled(report, seen.counts);
	if (!report_idle(report, all))
		report_few(report, seen.counts, all);
	report_estimated(report);
}

void closing_print(const struct report *report, const char *where, bool is_shown)
{
	struct headline headline;
	BUF(line);

	headline_of_profile(&headline, report->profile);
	headline.samples = report->outcomes->samples; /* of all windows */
	if (report->options->window_ns) /* the profile has those of the last window */
		headline.subject[0] = '\0';
	headline_text(&headline, "-v lists all", &line);
	if (!is_shown)
		log_info("%s%s%s", line.data, *where ? " → " : "", where);
	report_next(report);
}
