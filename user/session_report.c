/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "join/splice.h"
#include "session_internal.h"

#define TEXT_MAX 240

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- facts ---- */

static void fact_of_start(struct session *session)
{
	time_t start = (time_t)(session->profile.start_realtime_ns / NS_PER_SEC);
	struct tm utc;
	char text[32] = "";

	if (gmtime_r(&start, &utc))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
	profile_add_fact(&session->profile, "started", "%s", text);
}

static void fact_of_duration(struct session *session)
{
	profile_add_fact(&session->profile, "duration", "%.3f s",
			 (double)(session->profile.end_ns - session->profile.start_ns) / 1e9);
}

static void facts_of_sampling(struct session *session)
{
	struct profile *profile = &session->profile;
	struct buf events;

	buf_init(&events);
	event_list_text(&session->options->events, 1, &events);
	profile_add_fact(profile, "event", "%s", events.data);
	buf_release(&events);
	if (session->engine_why.len)
		profile_add_fact(profile, "engine", "%s (%s)", engines[session->engine].name, session->engine_why.data);
	else
		profile_add_fact(profile, "engine", "%s", engines[session->engine].name);
	if (session->stats.other_engine)
		profile_add_fact(profile, "engine of others", "ctimer in %llu JVMs that may not open perf events",
				 (unsigned long long)session->stats.other_engine);
	if (session->collector)
		profile_add_fact(profile, "pairing", "%s",
				 collector_uses_cookie(session->collector) ? "cookie" : "interval");
}

/* Formats how far the walks got, and how often AsyncGetCallTrace agreed when both had a stack. */
static void walk_texts(const struct session *session, char *walked, char *agreed, size_t size)
{
	const struct outcomes *outcomes = &session->stats.outcomes;
	uint64_t agreeing = outcomes->witnesses[SPLICE_AGREED], less = outcomes->witnesses[SPLICE_SAW_LESS];
	uint64_t contradicted = outcomes->witnesses[SPLICE_DISAGREED], compared = agreeing + less + contradicted;

	snprintf(walked, size,
		 "%llu of %llu samples of JVM threads to their entry (%.2f %%), "
		 "%llu needed %s (%.2f %%), %llu got one as a check",
		 (unsigned long long)outcomes->rooted, (unsigned long long)outcomes->jvm_samples,
		 percent(outcomes->rooted, outcomes->jvm_samples), (unsigned long long)outcomes->needed,
		 session->collector ? "a signal" : "a call of AsyncGetCallTrace",
		 percent(outcomes->needed, outcomes->jvm_samples), (unsigned long long)outcomes->checked);
	snprintf(agreed, size,
		 "%llu of %llu Java stacks walked twice (%.2f %%), AsyncGetCallTrace left out frames of %llu and "
		 "contradicted %llu (%.2f %%)",
		 (unsigned long long)agreeing, (unsigned long long)compared, percent(agreeing, compared),
		 (unsigned long long)less, (unsigned long long)contradicted, percent(contradicted, compared));
}

static void facts_of_walk(struct session *session)
{
	char walked[TEXT_MAX], agreed[TEXT_MAX];

	walk_texts(session, walked, agreed, TEXT_MAX);
	profile_add_fact(&session->profile, "walked", "%s", walked);
	profile_add_fact(&session->profile, "agreed", "%s", agreed);
}

/* Handler times are the JVMs' claims. */
static void fact_of_handler(struct session *session)
{
	uint64_t handler_ns = 0, signals = 0;

	for (size_t i = 0; i < session->agents.len; i++) {
		handler_ns += agent_handler_ns(session->agents.items[i]);
		signals += session->agents.items[i]->signalled;
	}
	if (signals)
		profile_add_fact(&session->profile, "signal handler", "%llu ns a signal (%llu signals)",
				 (unsigned long long)(handler_ns / signals), (unsigned long long)signals);
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

static void fact_of_bpf(struct session *session)
{
	uint64_t counts[DUET_RUN_TIMES] = {0};
	struct duet_cost cost;

	if (!session->collector || collector_cost(session->collector, &cost) || !cost.runs ||
	    collector_run_times(session->collector, counts))
		return;
	profile_add_fact(&session->profile, "BPF time",
			 "%llu ns a run (%llu runs, the longest %llu ns), those with a sample: median %llu ns, "
			 "99 of 100 within %llu ns",
			 (unsigned long long)(cost.run_ns / cost.runs), (unsigned long long)cost.runs,
			 (unsigned long long)cost.longest_ns, (unsigned long long)run_time_ns(counts, 50),
			 (unsigned long long)run_time_ns(counts, 99));
}

static void facts_of_join(struct session *session)
{
	const struct outcomes *outcomes = &session->stats.outcomes;

	profile_add_fact(&session->profile, "samples", "%llu", (unsigned long long)session->profile.samples.len);
	if (session->collector && outcomes->jvm_samples)
		profile_add_fact(&session->profile, "joined", "%llu of %llu samples of JVM threads (%.2f %%)",
				 (unsigned long long)outcomes->joined, (unsigned long long)outcomes->jvm_samples,
				 percent(outcomes->joined, outcomes->jvm_samples));
	if (outcomes->jvm_samples)
		facts_of_walk(session);
	fact_of_bpf(session);
	fact_of_handler(session);
}

/* "123: OpenJDK 64-Bit Server VM 17.0.15+6, java: app.jar" */
static void facts_of_jvms(struct session *session)
{
	for (size_t i = 0; i < session->agents.len; i++) {
		const struct agent *agent = session->agents.items[i];
		const char *application = intern_text(&session->profile.strings, agent->process->application);

		if (agent->vm[0])
			profile_add_fact(&session->profile, "JVM", "%d: %s%s%s", agent->process->pid, agent->vm,
					 *application ? ", " : "", application);
	}
}

static void fact_of_interval(struct session *session, const struct overhead_change *change)
{
	uint64_t start_ns = session->profile.start_ns;
	struct buf events;

	buf_init(&events);
	event_list_text(&session->options->events, change->every, &events);
	if (change->time_ns < start_ns)
		profile_add_fact(&session->profile, "interval", "%s at the start", events.data);
	else
		profile_add_fact(&session->profile, "interval", "%s from %.1f s on, duet took %.2f %% of the CPU",
				 events.data, (double)(change->time_ns - start_ns) / 1e9, change->percent);
	buf_release(&events);
}

/* Adds the interval at the start of this window and its changes during it. */
static void facts_of_changes(struct session *session)
{
	const struct overhead *overhead = &session->overhead;

	for (size_t i = 0; i < overhead->changes.len; i++) {
		const struct overhead_change *change = &overhead->changes.items[i];
		bool is_before = i + 1 < overhead->changes.len && change[1].time_ns < session->profile.start_ns;

		if (!is_before && change->time_ns <= session->profile.end_ns)
			fact_of_interval(session, change);
	}
}

static void facts_of_overhead(struct session *session)
{
	double all = (double)(session->profile.end_ns - session->command_ns) * (double)session->cpus / 100;
	struct duet_cost bpf = {0};
	struct overhead_cost cost;

	overhead_cost(&session->overhead, &cost);
	profile_add_fact(&session->profile, "overhead",
			 "%.2f %% of the host's CPU: BPF %.2f, interrupts and signals about %.2f, "
			 "loader %.2f, agents %.2f; of that, once for each file and process %.2f",
			 (double)overhead_sum(&cost) / all, (double)cost.bpf_ns / all, (double)cost.kernel_ns / all,
			 (double)cost.loader_ns / all, (double)cost.agents_ns / all, (double)cost.once_ns / all);
	facts_of_changes(session);
	if (session->overhead.change_count && !session->options->window_ns && !collector_cost(session->collector, &bpf))
		profile_add_fact(&session->profile, "ticks",
				 "%llu, of which %llu came after the last sample of their CPU",
				 (unsigned long long)bpf.ticks, (unsigned long long)bpf.pending);
}

static void facts_of_memory(struct session *session)
{
	const struct pool *pool = &session->budget.pool;
	double peak_mb = (double)pool->peak_bytes / (1 << 20);

	if (pool->max_bytes)
		profile_add_fact(&session->profile, "memory", "%.1f of %zu MB at most, caches dropped %llu times",
				 peak_mb, pool->max_bytes >> 20, (unsigned long long)pool->drops);
	else
		profile_add_fact(&session->profile, "memory", "%.1f MB at most", peak_mb);
}

static void facts_of_command(struct session *session)
{
	profile_add_fact(&session->profile, "duet", "%s", DUET_VERSION);
	profile_add_fact(&session->profile, "command", "%s", session->options->command_line);
	fact_of_start(session);
}

static void fact_of_host(struct session *session)
{
	const struct profile_host *host = &session->profile.host;
	const struct intern *strings = &session->profile.strings;

	profile_add_fact(&session->profile, "host", "%s, Linux %s, %s, %u CPUs", intern_text(strings, host->name),
			 intern_text(strings, host->kernel_release), intern_text(strings, host->machine),
			 host->processors);
}

void session_report_beginning(struct session *session)
{
	host_describe_machine(&session->host, &session->profile);
	facts_of_command(session);
	facts_of_sampling(session);
	fact_of_host(session);
}

void session_report_facts(struct session *session)
{
	host_describe(&session->host, &session->profile);
	facts_of_command(session);
	fact_of_duration(session);
	facts_of_sampling(session);
	facts_of_jvms(session);
	fact_of_host(session);
	facts_of_join(session);
	facts_of_memory(session);
	facts_of_overhead(session);
}

/* ---- losses ---- */

struct cause {
	const char *name, *text;
};
#define CAUSE_ROW(name, text) {#name, text},
static const struct cause bpf_causes[] = {DUET_BPF_COUNTERS(CAUSE_ROW)};
static const struct cause agent_causes[] = {DUET_AGENT_COUNTERS(CAUSE_ROW)};
static const struct cause loader_causes[] = {DUET_LOADER_COUNTERS(CAUSE_ROW)};

static void losses_of_bpf(struct session *session, session_loss_handler handler, void *context)
{
	uint64_t counters[DUET_BPF_COUNTER_MAX] = {0};

	if (!session->collector || collector_counters(session->collector, counters) < 0)
		return;
	for (size_t i = 0; i < DUET_BPF_COUNTER_MAX; i++)
		handler(context, bpf_causes[i].name, bpf_causes[i].text,
			counters[i] - session->stats.outcomes.own_unsignalled[i]);
}

static void losses_of_agents(struct session *session, session_loss_handler handler, void *context)
{
	for (enum duet_agent_counter c = 0; c < DUET_AGENT_COUNTER_MAX; c++) {
		uint64_t sum = session->stats.gone_lost[c];

		for (size_t i = 0; i < session->agents.len; i++)
			sum += agent_lost(session->agents.items[i], c);
		handler(context, agent_causes[c].name, agent_causes[c].text, sum);
	}
}

static void losses_of_loader(session_loss_handler handler, void *context)
{
	for (size_t i = 0; i < DUET_LOADER_COUNTER_MAX; i++)
		handler(context, loader_causes[i].name, loader_causes[i].text, loader_counters[i]);
}

static void losses_of_walks(struct session *session, session_loss_handler handler, void *context)
{
	char name[32], text[96];

	for (int code = 1; code < OUTCOMES_FAILURES; code++) {
		snprintf(name, sizeof(name), "ASGCT_%s", splice_failure_mark(-code));
		snprintf(text, sizeof(text), "Java stacks not walked: AsyncGetCallTrace said %s",
			 splice_failure_mark(-code));
		handler(context, name, text, session->stats.outcomes.failures[code]);
	}
}

void session_losses(struct session *session, session_loss_handler handler, void *context)
{
	losses_of_bpf(session, handler, context);
	losses_of_agents(session, handler, context);
	losses_of_loader(handler, context);
	losses_of_walks(session, handler, context);
}

static void report_loss(void *context, const char *name, const char *text, uint64_t count)
{
	(void)name;
	profile_add_loss(context, count, text);
}

void session_report_losses(struct session *session)
{
	session_losses(session, report_loss, &session->profile);
}

/* ---- the closing lines ---- */

static void summary_of_walk(const struct session *session)
{
	const struct outcomes *outcomes = &session->stats.outcomes;
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
	};
	char walked[TEXT_MAX], agreed[TEXT_MAX];

	walk_texts(session, walked, agreed, TEXT_MAX);
	log_info("walked: %s", walked);
	log_info("agreed: %s", agreed);
	for (size_t i = 0; i < DUET_WALK_END_MAX; i++)
		if (outcomes->walk_ends[i])
			log_debug("walks that ended at %s: %llu", ends[i], (unsigned long long)outcomes->walk_ends[i]);
}

void session_report_summary(const struct session *session)
{
	const struct outcomes *outcomes = &session->stats.outcomes;
	const struct profile *profile = &session->profile;

	log_info("%llu samples in %.1f s (engine %s)", (unsigned long long)outcomes->samples,
		 (double)(profile->end_ns - profile->start_ns) / 1e9, engines[session->engine].name);
	if (session->collector && outcomes->jvm_samples)
		log_info("joined: %llu of %llu samples of JVM threads (%.2f %%)", (unsigned long long)outcomes->joined,
			 (unsigned long long)outcomes->jvm_samples, percent(outcomes->joined, outcomes->jvm_samples));
	if (outcomes->jvm_samples)
		summary_of_walk(session);
	if (session->first_sample_ns)
		log_debug("first sample %.0f ms after the command, for %.0f ms of CPU time",
			  (double)(session->first_sample_ns - session->command_ns) / 1e6,
			  (double)session->first_sample_cpu_ns / 1e6);
	for (size_t i = 0; i < profile->losses.len; i++)
		log_info("lost: %llu %s", (unsigned long long)profile->losses.items[i].count,
			 intern_text(&profile->strings, profile->losses.items[i].text));
	if (!profile->losses.len)
		log_info("lost: nothing");
}

void session_report_progress(struct session *session)
{
	const struct outcomes *outcomes = &session->stats.outcomes;

	log_progress("%.0f s, %llu samples, %.1f %% joined, %llu lost",
		     (double)(clock_monotonic_ns() - session->started_ns) / 1e9, (unsigned long long)outcomes->samples,
		     percent(outcomes->joined, outcomes->jvm_samples), (unsigned long long)stats_lost(session));
}
