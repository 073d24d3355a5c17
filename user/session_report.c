/* SPDX-License-Identifier: MIT */
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "join/splice.h"
#include "session_internal.h"

#define TEXT_MAX 160

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void interval_text(uint64_t ns, char *text, size_t size)
{
	if (ns % NS_PER_SEC == 0)
		snprintf(text, size, "%llu s", (unsigned long long)(ns / NS_PER_SEC));
	else if (ns % NS_PER_MS == 0)
		snprintf(text, size, "%llu ms", (unsigned long long)(ns / NS_PER_MS));
	else if (ns % NS_PER_US == 0)
		snprintf(text, size, "%llu us", (unsigned long long)(ns / NS_PER_US));
	else
		snprintf(text, size, "%llu ns", (unsigned long long)ns);
}

/* ---- facts ---- */

static void facts_of_time(struct session *session)
{
	time_t start = (time_t)(session->profile.start_realtime_ns / NS_PER_SEC);
	struct tm utc;
	char text[32] = "";

	if (gmtime_r(&start, &utc))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
	profile_add_fact(&session->profile, "started", "%s", text);
	profile_add_fact(&session->profile, "duration", "%.1f s",
			 (double)(session->profile.end_ns - session->profile.start_ns) / 1e9);
}

static void facts_of_sampling(struct session *session)
{
	struct profile *profile = &session->profile;
	char interval[32];

	interval_text(session->options->interval_ns, interval, sizeof(interval));
	profile_add_fact(profile, "event", "%s every %s", session->options->event, interval);
	if (session->engine_why.len)
		profile_add_fact(profile, "engine", "%s (%s)", engines[session->engine].name, session->engine_why.data);
	else
		profile_add_fact(profile, "engine", "%s", engines[session->engine].name);
	if (session->collector)
		profile_add_fact(profile, "pairing", "%s",
				 collector_uses_cookie(session->collector) ? "cookie" : "interval");
}

/* How far BPF's own walk got, and what AsyncGetCallTrace says of it where both were there. */
static void walk_texts(const struct session_stats *stats, char *walked, char *agreed, size_t size)
{
	uint64_t less = stats->witnesses[SPLICE_SAW_LESS];
	uint64_t compared = stats->witnesses[SPLICE_AGREED] + less + stats->witnesses[SPLICE_DISAGREED];

	snprintf(walked, size, "%llu of %llu samples of JVM threads to their entry (%.2f %%), %llu signalled (%.2f %%)",
		 (unsigned long long)stats->rooted, (unsigned long long)stats->jvm_samples,
		 percent(stats->rooted, stats->jvm_samples), (unsigned long long)stats->signalled,
		 percent(stats->signalled, stats->jvm_samples));
	snprintf(agreed, size, "%llu of %llu Java stacks walked twice (%.2f %%), AsyncGetCallTrace left out frames of %llu",
		 (unsigned long long)stats->witnesses[SPLICE_AGREED], (unsigned long long)compared,
		 percent(stats->witnesses[SPLICE_AGREED], compared), (unsigned long long)less);
}

static void facts_of_walk(struct session *session)
{
	char walked[TEXT_MAX], agreed[TEXT_MAX];

	walk_texts(&session->stats, walked, agreed, TEXT_MAX);
	profile_add_fact(&session->profile, "walked", "%s", walked);
	profile_add_fact(&session->profile, "agreed", "%s", agreed);
}

static void facts_of_join(struct session *session)
{
	const struct session_stats *stats = &session->stats;
	uint64_t runs, ns;

	profile_add_fact(&session->profile, "samples", "%llu", (unsigned long long)stats->samples);
	if (session->collector && stats->jvm_samples)
		profile_add_fact(&session->profile, "joined", "%llu of %llu samples of JVM threads (%.2f %%)",
				 (unsigned long long)stats->joined, (unsigned long long)stats->jvm_samples,
				 percent(stats->joined, stats->jvm_samples));
	if (session->collector && stats->jvm_samples)
		facts_of_walk(session);
	if (session->collector && !collector_cost(session->collector, &runs, &ns) && runs)
		profile_add_fact(&session->profile, "BPF time", "%llu ns a run (%llu runs)",
				 (unsigned long long)(ns / runs), (unsigned long long)runs);
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

void session_report_facts(struct session *session)
{
	struct utsname host = {0};

	uname(&host);
	profile_add_fact(&session->profile, "duet", "%s", DUET_VERSION);
	profile_add_fact(&session->profile, "command", "%s", session->options->command_line);
	facts_of_time(session);
	facts_of_sampling(session);
	facts_of_jvms(session);
	profile_add_fact(&session->profile, "host", "%s, Linux %s, %s, %ld CPUs", host.nodename, host.release,
			 host.machine, sysconf(_SC_NPROCESSORS_ONLN));
	facts_of_join(session);
}

/* ---- losses ---- */

#define TEXT_ROW(name, text) text,
static const char *const bpf_texts[] = {DUET_BPF_COUNTERS(TEXT_ROW)};
static const char *const agent_texts[] = {DUET_AGENT_COUNTERS(TEXT_ROW)};
static const char *const loader_texts[] = {DUET_LOADER_COUNTERS(TEXT_ROW)};

static void losses_of_bpf(struct session *session)
{
	uint64_t counters[DUET_BPF_COUNTER_MAX] = {0};

	if (!session->collector || collector_counters(session->collector, counters) < 0)
		return;
	for (size_t i = 0; i < DUET_BPF_COUNTER_MAX; i++)
		profile_add_loss(&session->profile, counters[i] - session->stats.own_unsignalled[i], bpf_texts[i]);
}

static void losses_of_agents(struct session *session)
{
	for (enum duet_agent_counter c = 0; c < DUET_AGENT_COUNTER_MAX; c++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < session->agents.len; i++)
			sum += agent_lost(session->agents.items[i], c);
		profile_add_loss(&session->profile, sum, agent_texts[c]);
	}
}

static void add_losses_of_stacks(const struct session *session, uint64_t *counters)
{
	const uint64_t *ends = session->stats.walk_ends;

	counters[DUET_LOADER_STACK_GUESSED] += session->stats.guessed_stacks;
	counters[DUET_LOADER_STACK_NO_ROW] += ends[DUET_WALK_NO_ROW] + ends[DUET_WALK_BAD_FP];
	counters[DUET_LOADER_STACK_UNREADABLE] += ends[DUET_WALK_UNREADABLE];
	counters[DUET_LOADER_STACK_BAD_CFA] += ends[DUET_WALK_BAD_CFA];
	counters[DUET_LOADER_STACK_DEPTH] += ends[DUET_WALK_DEPTH];
	counters[DUET_LOADER_UNWIND_FILES] += session->unwinding.files_refused;
	counters[DUET_LOADER_UNWIND_PROCESSES] += session->unwinding.processes_refused;
}

static void losses_of_loader(struct session *session)
{
	uint64_t counters[DUET_LOADER_COUNTER_MAX];

	for (size_t i = 0; i < DUET_LOADER_COUNTER_MAX; i++)
		counters[i] = join_counters(session->join)[i];
	counters[DUET_LOADER_BAD_RECORD] += session->stats.bad_records;
	counters[DUET_LOADER_NAME_MISSING] += session->resolver.names_missing;
	counters[DUET_LOADER_OUT_OF_MEMORY] += session->stats.lost_in_profile;
	counters[DUET_LOADER_STACKS_FULL] += session->resolver.stacks_full;
	counters[DUET_LOADER_CODE_MISSING] += session->stats.code_missing;
	add_losses_of_stacks(session, counters);
	for (size_t i = 0; i < session->agents.len; i++) {
		counters[DUET_LOADER_BAD_AGENT_RECORD] += session->agents.items[i]->bad_records;
		counters[DUET_LOADER_JVM_FULL] += session->agents.items[i]->full_records;
		counters[DUET_LOADER_RING_HOSTILE] += session->agents.items[i]->hostile;
	}
	for (size_t i = 0; i < DUET_LOADER_COUNTER_MAX; i++)
		profile_add_loss(&session->profile, counters[i], loader_texts[i]);
}

static void losses_of_walks(struct session *session)
{
	char text[96];

	for (int code = 1; code < SESSION_FAILURE_CODES; code++) {
		snprintf(text, sizeof(text), "Java stacks not walked: AsyncGetCallTrace said %s",
			 splice_failure_mark(-code));
		profile_add_loss(&session->profile, session->stats.failures[code], text);
	}
}

void session_report_losses(struct session *session)
{
	losses_of_bpf(session);
	losses_of_agents(session);
	losses_of_loader(session);
	losses_of_walks(session);
}

/* ---- the closing lines ---- */

static void summary_of_walk(const struct session_stats *stats)
{
	static const char *const ends[DUET_WALK_END_MAX] = {
		[DUET_WALK_NONE] = "no user registers",
		[DUET_WALK_ENTRY] = "the entry, but by guess",
		[DUET_WALK_DEPTH] = "too many frames",
		[DUET_WALK_UNREADABLE] = "unreadable memory",
		[DUET_WALK_NO_ROW] = "no unwind row",
		[DUET_WALK_BAD_CFA] = "a frame out of order",
		[DUET_WALK_BAD_FP] = "a frame pointer that is none",
		[DUET_WALK_NO_BLOB] = "unknown JVM code",
		[DUET_WALK_NO_FRAME] = "JVM code without a frame size",
		[DUET_WALK_LEAF] = "a Java frame being made or left",
		[DUET_WALK_BAD_INTERPRETED] = "no interpreter frame",
	};
	char walked[TEXT_MAX], agreed[TEXT_MAX];

	walk_texts(stats, walked, agreed, TEXT_MAX);
	log_info("walked: %s", walked);
	log_info("agreed: %s", agreed);
	for (size_t i = 0; i < DUET_WALK_END_MAX; i++)
		if (stats->jvm_walk_ends[i])
			log_debug("walks that ended at %s: %llu", ends[i], (unsigned long long)stats->jvm_walk_ends[i]);
}

void session_report_summary(const struct session *session)
{
	const struct session_stats *stats = &session->stats;
	const struct profile *profile = &session->profile;

	log_info("%llu samples in %.1f s (engine %s)", (unsigned long long)stats->samples,
		 (double)(profile->end_ns - profile->start_ns) / 1e9, engines[session->engine].name);
	if (session->collector && stats->jvm_samples)
		log_info("joined: %llu of %llu samples of JVM threads (%.2f %%)", (unsigned long long)stats->joined,
			 (unsigned long long)stats->jvm_samples, percent(stats->joined, stats->jvm_samples));
	if (session->collector && stats->jvm_samples)
		summary_of_walk(stats);
	if (session->first_sample_ns)
		log_debug("first sample %.0f ms after the command",
			  (double)(session->first_sample_ns - session->command_ns) / 1e6);
	for (size_t i = 0; i < profile->losses.len; i++)
		log_info("lost: %llu %s", (unsigned long long)profile->losses.items[i].count,
			 intern_text(&profile->strings, profile->losses.items[i].text));
	if (!profile->losses.len)
		log_info("lost: nothing");
}

void session_report_progress(const struct session *session)
{
	const struct session_stats *stats = &session->stats;

	log_progress("%.0f s, %llu samples, %.1f %% joined, %llu lost",
		     (double)(clock_monotonic_ns() - session->started_ns) / 1e9, (unsigned long long)stats->samples,
		     percent(stats->joined, stats->jvm_samples),
		     (unsigned long long)(stats->jvm_samples - stats->joined + stats->lost_in_profile));
}
