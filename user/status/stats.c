/* SPDX-License-Identifier: MIT */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/vec.h"
#include "collect/engines.h"
#include "join/sink.h"
#include "jvms/agents.h"
#include "limits/budget.h"
#include "limits/overhead.h"
#include "proc/process.h"
#include "status/report.h"
#include "writers/text/headline.h"

/* Rows with the same name are adjacent. */
struct stats_row {
	const char *name; /* in Prometheus' form: base units, and _total for counters */
	const char *label; /* NULL for none */
	char value[48]; /* value of the label */
	char help[112];
	double number;
};

struct stats {
	struct vec(struct stats_row) rows;
	int err;
};

static void add(struct stats *to, const char *name, const char *help, const char *label, const char *value,
		double number)
{
	struct stats_row row = {.name = name, .label = label, .number = number};

	snprintf(row.help, sizeof(row.help), "%s", help);
	snprintf(row.value, sizeof(row.value), "%s", value ? value : "");
	if (vec_push(&to->rows, row) < 0)
		to->err = -ENOMEM;
}

static void add_one(struct stats *to, const char *name, const char *help, double number)
{
	add(to, name, help, NULL, NULL, number);
}

static void add_samples(struct stats *to, const struct report *report)
{
	const struct outcomes *outcomes = report->outcomes;

	add(to, "duet_info", "version", "version", DUET_VERSION, 1);
	add(to, "duet_engine", "engine", "engine", report->engine->row->name, 1);
	add_one(to, "duet_uptime_seconds", "seconds since the first tick",
		report->started_ns ? (double)(clock_monotonic_ns() - report->started_ns) / 1e9 : 0);
	add_one(to, "duet_interval_seconds", "interval of cpu samples now, in seconds of CPU time",
		(double)overhead_interval_ns(report->overhead) / 1e9);
	add_one(to, "duet_longest_step_seconds", "longest time in seconds without a look at BPF's ring and the agents",
		(double)*report->longest_step_ns / 1e9);
	add_one(to, "duet_interval_changes_total", "changes of the interval", (double)report->overhead->change_count);
	add_one(to, "duet_samples_total", "samples", (double)outcomes->samples);
	add_one(to, "duet_jvm_samples_total", "samples of threads of joined JVMs", (double)outcomes->jvm_samples);
	add_one(to, "duet_joined_samples_total", "samples of threads of joined JVMs, with all their frames",
		(double)outcomes->joined);
	add_one(to, "duet_windows_total", "windows written", (double)*report->windows);
	add_one(to, "duet_signals_total", "samples that signalled their thread",
		(double)(outcomes->needed + outcomes->checked));
}

static void add_targets(struct stats *to, const struct report *report)
{
	size_t running = 0, failed = 0, processes = 0;

	for (size_t i = 0; i < report->agents->len; i++) {
		running += report->agents->items[i]->state == AGENT_RUNNING;
		failed += report->agents->items[i]->state == AGENT_FAILED;
	}
	for (size_t i = 0; i < report->processes->all.len; i++)
		processes += !report->processes->all.items[i]->exited;
	add_one(to, "duet_processes", "known processes", (double)processes);
	add_one(to, "duet_jvms", "JVMs with an agent", (double)running);
	add_one(to, "duet_jvms_failed", "JVMs to which no agent could be attached", (double)failed);
	add_one(to, "duet_jvms_refused_total", "JVMs without an agent because of --max-memory",
		(double)loader_counters[DUET_LOADER_JVMS_REFUSED]);
}

static void add_memory(struct stats *to, const struct pool *pool)
{
	static const char name[] = "duet_memory_part_bytes", help[] = "bytes of RAM, by part";

	add_one(to, "duet_memory_bytes", "bytes of RAM that duet uses", (double)pool_sum(&pool->shares));
	add(to, name, help, "part", "maps", (double)pool->shares.maps);
	add(to, name, help, "part", "rings", (double)pool->shares.rings);
	add(to, name, help, "part", "files", (double)pool->shares.files);
	add(to, name, help, "part", "heap", (double)pool->shares.heap);
	add_one(to, "duet_memory_peak_bytes", "most bytes of RAM that duet has used", (double)pool->peak_bytes);
	add_one(to, "duet_memory_limit_bytes", "--max-memory, or its default: most bytes of RAM",
		(double)pool->max_bytes);
	add_one(to, "duet_cache_drops_total", "times that caches were dropped because of the limit",
		(double)pool->drops);
}

static void add_cost(struct stats *to, const struct report *report)
{
	static const char name[] = "duet_cpu_seconds_total", help[] = "seconds of CPU time that duet used, by part";
	struct overhead_cost cost;

	overhead_cost(report->overhead, &cost);
	add(to, name, help, "part", "bpf", (double)cost.bpf_ns / 1e9);
	add(to, name, help, "part", "kernel_estimate", (double)cost.kernel_ns / 1e9);
	add(to, name, help, "part", "loader", (double)cost.loader_ns / 1e9);
	add(to, name, help, "part", "agents", (double)cost.agents_ns / 1e9);
	add_one(to, "duet_once_cpu_seconds_total", "seconds of CPU time, once for each file, process and JVM",
		(double)cost.once_ns / 1e9);
	add_one(to, "duet_overhead_ratio", "share of the host's CPU that duet used in the last seconds",
		report->overhead->pace.percent / 100);
	add_one(to, "duet_overhead_limit_ratio", "--max-overhead as a share, 0 without a limit",
		report->overhead->pace.max_percent / 100);
	add_memory(to, report->pool);
}

static void add_loss(void *context, const char *name, const char *text, uint64_t count)
{
	char cause[sizeof(((struct stats_row *)0)->value)];
	size_t len = 0;

	for (; *name && len < sizeof(cause) - 1; name++)
		if (isalnum((unsigned char)*name) || *name == '_')
			cause[len++] = (char)tolower((unsigned char)*name);
	cause[len] = '\0';
	add(context, "duet_lost_total", text, "cause", cause, (double)count);
}

/* Prometheus' text format 0.0.4. Rows of one name share the first one's help. That of a loss is its cause. */
static void add_metrics(const struct stats *stats, struct buf *text)
{
	const char *last = "";

	for (size_t i = 0; i < stats->rows.len; i++) {
		const struct stats_row *row = &stats->rows.items[i];
		bool is_loss = !strcmp(row->name, "duet_lost_total");

		if (strcmp(row->name, last) != 0)
			buf_printf(text, "# HELP %s %s\n# TYPE %s %s\n", row->name,
				   is_loss ? "what was lost, by cause" : row->help, row->name,
				   memcmp(row->name + strlen(row->name) - 6, "_total", 6) ? "gauge" : "counter");
		last = row->name;
		buf_add_str(text, row->name);
		if (row->label)
			buf_printf(text, "{%s=\"%s\"}", row->label, row->value);
		buf_printf(text, " %.15g\n", row->number);
	}
}

/* Appends one value a line, for people; leaves out losses of 0. */
static void add_status(const struct stats *stats, struct buf *text)
{
	for (size_t i = 0; i < stats->rows.len; i++) {
		const struct stats_row *row = &stats->rows.items[i];
		bool is_loss = !strcmp(row->name, "duet_lost_total");

		if (is_loss && row->number > 0)
			buf_printf(text, "%15.0f  lost: %s\n", row->number, row->help);
		else if (!is_loss && row->label && row->number == 1)
			buf_printf(text, "%15s  %s\n", row->value, row->help);
		else if (!is_loss)
			buf_printf(text, "%15.15g  %s%s%s\n", row->number, row->help, row->label ? ": " : "",
				   row->value);
	}
}

static void add_headline(const struct report *report, struct buf *text)
{
	struct headline now;

	if (!report->started_ns)
		return;
	closing_now(report, clock_monotonic_ns(), &now);
	headline_text(&now, "see below", text);
	buf_add_char(text, '\n');
}

void stats_answer(void *context, bool for_people, struct buf *text)
{
	const struct report *report = context;
	struct stats stats = {0};

	if (for_people)
		add_headline(report, text);
	add_samples(&stats, report);
	add_targets(&stats, report);
	add_cost(&stats, report);
	report_each_loss(report, add_loss, &stats);
	if (!stats.err)
		for_people ? add_status(&stats, text) : add_metrics(&stats, text);
	vec_release(&stats.rows);
}
