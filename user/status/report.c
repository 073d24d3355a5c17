/* SPDX-License-Identifier: MIT */
#include "status/report.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/text.h"
#include "collect/engines.h"
#include "event/options.h"
#include "join/sink.h"
#include "join/splice.h"
#include "jvms/agents.h"
#include "jvms/jvms.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "profile/profile.h"
#include "subject/host.h"
#include "subject/program.h"

#define add_fact(report, ...) profile_add_fact((report)->profile, __VA_ARGS__)

/* ---- facts ---- */

static void fact_of_start(const struct report *report)
{
	time_t start = (time_t)(report->profile->start_realtime_ns / NS_PER_SEC);
	struct tm utc;
	char text[32] = "";

	if (gmtime_r(&start, &utc))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
	add_fact(report, "started", "%s", text);
}

static void facts_of_sampling(const struct report *report)
{
	BUF(events);

	event_list_text(&report->options->events, 1, &events);
	add_fact(report, "event", "%s", events.data);
	if (report->engine_why[0])
		add_fact(report, "engine", "%s (%s)", report->engine->row->name, report->engine_why);
	else
		add_fact(report, "engine", "%s", report->engine->row->name);
	if (report->agents->other_engine)
		add_fact(report, "engine of others", "ctimer in %lu JVMs that may not open perf events",
			 report->agents->other_engine);
	if (!report->engine->row->standalone)
		add_fact(report, "pairing", "%s", report->engine->facts.uses_cookie ? "cookie" : "interval");
}

/* The second witness: AsyncGetCallTrace for the samples of a clock, JVMTI for those of a callback. */
static const char *witness_name(const struct event_list *events)
{
	if (!event_list_has_taps(events))
		return "AsyncGetCallTrace";
	return event_list_has_ticks(events) ? "AsyncGetCallTrace or JVMTI" : "JVMTI";
}

/* Appends how far the walks got. */
static void add_walked(const struct report *report, struct buf *text)
{
	bool is_signal = !report->engine->row->standalone && event_list_has_ticks(&report->options->events);
	const struct outcomes *outcomes = report->outcomes;

	buf_printf(text,
		   "%lu of %lu samples of JVM threads to their entry (%.2f %%), "
		   "%lu needed a %s%s (%.2f %%), %lu got one as a check",
		   outcomes->rooted, outcomes->jvm_samples, text_percent(outcomes->rooted, outcomes->jvm_samples),
		   outcomes->needed, is_signal ? "signal" : "call of ",
		   is_signal ? "" : witness_name(&report->options->events),
		   text_percent(outcomes->needed, outcomes->jvm_samples), outcomes->checked);
}

/* Appends how often the witness agreed when both had a stack, and both had indices of byte codes. */
static void add_agreed(const struct report *report, struct buf *text)
{
	const struct outcomes *outcomes = report->outcomes;
	uint64_t agreeing = outcomes->witnesses[SPLICE_AGREED], less = outcomes->witnesses[SPLICE_SAW_LESS];
	uint64_t contradicted = outcomes->witnesses[SPLICE_DISAGREED], compared = agreeing + less + contradicted;
	uint64_t alike = outcomes->bcis[ALIKE_AGREED], bcis = alike + outcomes->bcis[ALIKE_DISAGREED];

	if (!compared && report->agents->sources[JVM_OUTSIDE])
		buf_add_str(text, "read from outside: no witness");
	else
		buf_printf(text,
			   "%lu of %lu Java stacks walked twice (%.2f %%), %s left out frames of %lu and "
			   "contradicted %lu (%.2f %%)",
			   agreeing, compared, text_percent(agreeing, compared), witness_name(&report->options->events),
			   less, contradicted, text_percent(contradicted, compared));
	if (bcis)
		buf_printf(text, "; the same byte code indices in %lu of %lu (%.2f %%)", alike, bcis,
			   text_percent(alike, bcis));
}

/* Appends how the JVMs were read, and whether the two sources agreed where there were two. */
static void add_read(const struct report *report, struct buf *text)
{
	const uint64_t *sources = report->agents->sources, *names = report->outcomes->names;
	uint64_t compared = names[ALIKE_AGREED] + names[ALIKE_DISAGREED];

	buf_printf(text, "%lu JVMs from outside, %lu by an agent, %lu from outside until an agent was in",
		   sources[JVM_OUTSIDE], sources[JVM_AGENT], sources[JVM_BOTH]);
	if (compared)
		buf_printf(text, "; both named %lu of %lu Java stacks alike (%.2f %%)", names[ALIKE_AGREED], compared,
			   text_percent(names[ALIKE_AGREED], compared));
}

static bool has_jvms(const struct report *report)
{
	const uint64_t *sources = report->agents->sources;

	return sources[JVM_OUTSIDE] || sources[JVM_AGENT] || sources[JVM_BOTH];
}

/* Says how many stacks have inlined methods that the compilers have not recorded. */
static void fact_of_inlining(const struct report *report)
{
	const struct outcomes *outcomes = report->outcomes;

	if (outcomes->estimated)
		add_fact(report, "inlining", "estimated in %lu of %lu samples of JVM threads (%.2f %%)",
			 outcomes->estimated, outcomes->jvm_samples,
			 text_percent(outcomes->estimated, outcomes->jvm_samples));
}

static void facts_of_walk(const struct report *report)
{
	BUF(walked);
	BUF(agreed);

	add_walked(report, &walked);
	add_fact(report, "walked", "%s", walked.data);
	add_agreed(report, &agreed);
	add_fact(report, "agreed", "%s", agreed.data);
	fact_of_inlining(report);
}

/* The handlers' times are values that the JVMs claim. */
static void fact_of_handler(const struct report *report)
{
	uint64_t handler_ns = 0, signals = 0;

	for (size_t i = 0; i < report->agents->len; i++) {
		handler_ns += agent_handler_ns(report->agents->items[i]);
		signals += report->agents->items[i]->signalled;
	}
	if (signals)
		add_fact(report, "signal handler", "%lu ns a signal (%lu signals)", handler_ns / signals, signals);
}

/* Returns a percentile of the run times. Histogram steps are short, so the middle of the step is exact enough. */
static uint64_t run_time_ns(const uint64_t counts[DUET_RUN_TIMES], unsigned per_cent)
{
	uint64_t all = 0, so_far = 0;
	uint64_t step = 0;

	for (size_t i = 0; i < DUET_RUN_TIMES; i++)
		all += counts[i];
	while (step + 1 < DUET_RUN_TIMES && (so_far += counts[step]) * 100 < all * per_cent)
		step++;
	return (2 * step + 1) << DUET_RUN_TIME_SHIFT >> 1;
}

static void fact_of_bpf(const struct report *report)
{
	uint64_t counts[DUET_RUN_TIMES] = {0};
	struct duet_cost cost;

	if (collector_cost(report->engine->collector, COLLECTOR_ALL_EVENTS, &cost) || !cost.runs ||
	    collector_run_times(report->engine->collector, counts))
		return;
	add_fact(report, "BPF time",
		 "%lu ns a run (%lu runs, the longest %lu ns), those with a sample: median %lu ns, "
		 "99 of 100 within %lu ns",
		 cost.run_ns / cost.runs, cost.runs, cost.longest_ns, run_time_ns(counts, 50), run_time_ns(counts, 99));
}

/* What taking the samples cost the sampled threads. */
static void fact_of_walks(const struct report *report)
{
	struct duet_cost cost = {0};
	uint64_t ns;

	(void)collector_cost(report->engine->collector, COLLECTOR_ALL_EVENTS, &cost);
	ns = cost.run_ns;
	for (size_t i = 0; i < report->agents->len; i++)
		ns += agent_handler_ns(report->agents->items[i]);
	add_fact(report, REPORT_WALKS, "%lu ns", ns);
}

static void facts_of_join(const struct report *report)
{
	const struct outcomes *outcomes = report->outcomes;

	add_fact(report, "samples", "%lu", report->profile->samples.count);
	if (!report->engine->row->standalone && outcomes->jvm_samples)
		add_fact(report, "joined", "%lu of %lu samples of JVM threads (%.2f %%)", outcomes->joined,
			 outcomes->jvm_samples, text_percent(outcomes->joined, outcomes->jvm_samples));
	if (outcomes->jvm_samples)
		facts_of_walk(report);
	if (outcomes->lock_ns)
		add_fact(report, "lock holders", "known for %.2f %% of the time that threads waited",
			 text_percent(outcomes->held_ns, outcomes->lock_ns));
	fact_of_bpf(report);
	fact_of_handler(report);
	fact_of_walks(report);
}

/* Adds "123: OpenJDK 64-Bit Server VM 17.0.15+6, java: app.jar, read from outside" for each JVM. */
static void facts_of_jvms(const struct report *report)
{
	static const char *const words[JVM_SOURCES] = {
		[JVM_UNREAD] = "",
		[JVM_OUTSIDE] = ", read from outside",
		[JVM_AGENT] = ", read by an agent: ", /* and why there is one */
		[JVM_BOTH] = ", read from outside, then by an agent: ",
	};
	BUF(text);

	for (size_t i = 0; i < report->agents->len; i++) {
		const struct agent *agent = report->agents->items[i];
		uint32_t name = subject_of(agent->origin.process)->application;
		const char *application = intern_text(&report->profile->strings, name);
		uint8_t source = jvm_process(agent->origin.process)->source;

		if (!agent->vm[0] || agent_in_charge(jvm_process(agent->origin.process)->agent) != agent)
			continue;
		add_fact(report, "JVM", "%d: %s%s%s%s%s", agent->origin.process->pid, agent->vm,
			 *application ? ", " : "", application, words[source], source >= JVM_AGENT ? agent->cause : "");
	}
	if (!has_jvms(report))
		return;
	add_read(report, &text);
	add_fact(report, "read", "%s", text.data);
}

static void fact_of_interval(const struct report *report, const struct overhead_change *change)
{
	uint64_t start_ns = report->profile->start_ns;
	BUF(events);

	event_list_text(&report->options->events, change->every, &events);
	if (change->time_ns < start_ns)
		add_fact(report, "interval", "%s at the start", events.data);
	else
		add_fact(report, "interval", "%s from %.1f s on, duet took %.2f %% of the CPU", events.data,
			 (double)(change->time_ns - start_ns) / 1e9, change->percent);
}

/* Adds the interval at the start of this window and its changes during it. */
static void facts_of_changes(const struct report *report)
{
	const struct overhead *overhead = report->overhead;

	for (size_t i = 0; i < overhead->changes.len; i++) {
		const struct overhead_change *change = &overhead->changes.items[i];
		bool is_before = i + 1 < overhead->changes.len && change[1].time_ns < report->profile->start_ns;

		if (!is_before && change->time_ns <= report->profile->end_ns)
			fact_of_interval(report, change);
	}
}

/* For the page: a profile of few samples looks like one of many. */
static void fact_of_rarity(const struct report *report)
{
	const struct profile *profile = report->profile;
	double rarer = overhead_rarer(report->overhead, profile->start_ns, profile->end_ns);
	BUF(events);

	if (rarer < 2)
		return;
	event_list_text(&report->options->events, (uint64_t)(rarer + 0.5), &events);
	add_fact(report, "sampled rarely",
		 "%s on average, %.0f times as long as asked, to stay within %.6g %% of the CPU", events.data, rarer,
		 report->overhead->pace.max_percent);
}

static void facts_of_overhead(const struct report *report)
{
	double all = (double)(report->profile->end_ns - report->command_ns) * (double)report->overhead->cpus / 100;
	struct duet_cost bpf;
	struct overhead_cost cost;

	overhead_cost(report->overhead, &cost);
	add_fact(report, "overhead",
		 "%.2f %% of the host's CPU: BPF %.2f, interrupts and signals about %.2f, "
		 "loader %.2f, agents %.2f; of that, once for each file and process %.2f",
		 (double)overhead_sum(&cost) / all, (double)cost.bpf_ns / all, (double)cost.kernel_ns / all,
		 (double)cost.loader_ns / all, (double)cost.agents_ns / all, (double)cost.once_ns / all);
	facts_of_changes(report);
	fact_of_rarity(report);
	if (report->overhead->change_count && !report->options->window_ns &&
	    !collector_cost(report->engine->collector, COLLECTOR_ALL_EVENTS, &bpf))
		add_fact(report, "ticks", "%lu, of which %lu came after the last sample of their CPU", bpf.ticks,
			 bpf.pending);
}

static void facts_of_memory(const struct report *report)
{
	const struct pool *pool = report->pool;
	double peak_mb = (double)pool->peak_bytes / (1 << 20);

	if (pool->max_bytes)
		add_fact(report, "memory", "%.1f of %zu MB at most, caches dropped %lu times", peak_mb,
			 pool->max_bytes >> 20, pool->drops);
	else
		add_fact(report, "memory", "%.1f MB at most", peak_mb);
}

static void facts_of_command(const struct report *report)
{
	add_fact(report, "duet", "%s", DUET_VERSION);
	add_fact(report, "command", "%s", report->options->command_line);
	fact_of_start(report);
}

static void fact_of_host(const struct report *report)
{
	const struct profile_host *host = &report->profile->host;
	const struct intern *strings = &report->profile->strings;

	add_fact(report, "host", "%s, Linux %s, %s, %u CPUs", intern_text(strings, host->name),
		 intern_text(strings, host->kernel_release), intern_text(strings, host->machine), host->processors);
}

void report_beginning(const struct report *report)
{
	host_describe_machine(report->host, report->profile);
	facts_of_command(report);
	facts_of_sampling(report);
	fact_of_host(report);
}

void report_so_far(const struct report *report)
{
	report_beginning(report);
	fact_of_walks(report);
	report_losses(report);
}

void report_facts(const struct report *report)
{
	host_describe(report->host, report->profile);
	facts_of_command(report);
	add_fact(report, "duration", "%.3f s", (double)(report->profile->end_ns - report->profile->start_ns) / 1e9);
	facts_of_sampling(report);
	facts_of_jvms(report);
	fact_of_host(report);
	facts_of_join(report);
	facts_of_memory(report);
	facts_of_overhead(report);
}

static void report_loss(void *context, const char *name, const char *text, uint64_t count)
{
	profile_add_loss(context, count, text);
}

void report_losses(const struct report *report)
{
	vec_clear(&report->profile->losses);
	report_each_loss(report, report_loss, report->profile);
}

/* ---- the lines of -v ---- */

static void summary_of_walk(const struct report *report)
{
	const struct outcomes *outcomes = report->outcomes;
	static const char *const ends[DUET_WALK_END_MAX] = {
		[DUET_WALK_NONE] = "no user registers",
		[DUET_WALK_ENTRY] = "the entry, with guessed frames",
		[DUET_WALK_DEPTH] = "too many frames",
		[DUET_WALK_UNREADABLE] = "unreadable memory",
		[DUET_WALK_NO_ROW] = "no unwind row",
		[DUET_WALK_BAD_CFA] = "a frame out of order",
		[DUET_WALK_BAD_FP] = "an invalid frame pointer",
		[DUET_WALK_NO_BLOB] = "unknown JVM code",
		[DUET_WALK_NO_FRAME] = "JVM code without a frame size",
		[DUET_WALK_LEAF] = "a Java frame that was being built or removed",
		[DUET_WALK_BAD_INTERPRETED] = "an invalid interpreter frame",
		[DUET_WALK_LONG] = "the time limit",
		[DUET_WALK_EXITING] = "the end of their thread",
	};
	BUF(walked);
	BUF(agreed);

	add_walked(report, &walked);
	log_info("walked: %s", walked.data);
	add_agreed(report, &agreed);
	log_info("agreed: %s", agreed.data);
	for (size_t i = 0; i < DUET_WALK_END_MAX; i++)
		if (outcomes->walk_ends[i])
			log_debug("walks that ended at %s: %lu", ends[i], outcomes->walk_ends[i]);
}

void report_details(const struct report *report)
{
	const struct outcomes *outcomes = report->outcomes;
	const struct profile *profile = report->profile;
	BUF(text);

	log_info("%lu samples in %.1f s (engine %s)", outcomes->samples,
		 (double)(profile->end_ns - profile->start_ns) / 1e9, report->engine->row->name);
	if (!report->engine->row->standalone && outcomes->jvm_samples)
		log_info("joined: %lu of %lu samples of JVM threads (%.2f %%)", outcomes->joined, outcomes->jvm_samples,
			 text_percent(outcomes->joined, outcomes->jvm_samples));
	if (outcomes->jvm_samples)
		summary_of_walk(report);
	if (has_jvms(report)) {
		add_read(report, &text);
		log_info("read: %s", text.data);
	}
	if (report->overhead->first_sample_ns)
		log_debug("first sample %.0f ms after the command, for %.0f ms of CPU time",
			  (double)(report->overhead->first_sample_ns - report->command_ns) / 1e6,
			  (double)report->overhead->first_sample_cpu_ns / 1e6);
	for (size_t i = 0; i < profile->losses.len; i++)
		log_info("lost: %lu %s", profile->losses.items[i].count,
			 intern_text(&profile->strings, profile->losses.items[i].text));
	if (!profile->losses.len)
		log_info("lost: nothing");
}

struct cause {
	const char *name, *text;
};
#define CAUSE_ROW(name, loss, text) {#name, text},
static const struct cause bpf_causes[] = {DUET_BPF_COUNTERS(CAUSE_ROW)};
static const struct cause agent_causes[] = {DUET_AGENT_COUNTERS(CAUSE_ROW)};
static const struct cause loader_causes[] = {DUET_LOADER_COUNTERS(CAUSE_ROW)};

static void losses_of_bpf(const struct report *report, loss_handler handler, void *context)
{
	uint64_t counters[DUET_BPF_COUNTER_MAX];

	if (report->engine->row->standalone || collector_counters(report->engine->collector, counters) < 0)
		return;
	for (size_t i = 0; i < DUET_BPF_COUNTER_MAX; i++)
		handler(context, bpf_causes[i].name, bpf_causes[i].text,
			counters[i] - report->outcomes->own_unsignalled[i]);
}

static void losses_of_agents(const struct report *report, loss_handler handler, void *context)
{
	for (enum duet_agent_counter c = 0; c < DUET_AGENT_COUNTER_MAX; c++) {
		uint64_t sum = report->agents->gone_lost[c];

		for (size_t i = 0; i < report->agents->len; i++)
			sum += agent_lost(report->agents->items[i], c);
		handler(context, agent_causes[c].name, agent_causes[c].text, sum);
	}
}

static void losses_of_walks(const struct report *report, loss_handler handler, void *context)
{
	char name[32], text[96];

	for (int code = 1; code < OUTCOMES_FAILURES; code++) {
		snprintf(name, sizeof(name), "ASGCT_%s", splice_failure_mark(-code));
		snprintf(text, sizeof(text), "Java stacks not walked: AsyncGetCallTrace said %s",
			 splice_failure_mark(-code));
		handler(context, name, text, report->outcomes->failures[code]);
	}
}

void report_each_loss(const struct report *report, loss_handler handler, void *context)
{
	losses_of_bpf(report, handler, context);
	losses_of_agents(report, handler, context);
	for (size_t i = 0; i < DUET_LOADER_COUNTER_MAX; i++)
		handler(context, loader_causes[i].name, loader_causes[i].text, loader_counters[i]);
	losses_of_walks(report, handler, context);
}
