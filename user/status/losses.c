/* SPDX-License-Identifier: MIT */
#include "status/losses.h"

#include <stdio.h>

#include "base/counters.h"
#include "collect/engines.h"
#include "join/outcomes.h"
#include "join/splice.h"
#include "jvms/agents.h"
#include "status/report.h"

struct cause {
	const char *name, *text;
};
#define CAUSE_ROW(name, text) {#name, text},
static const struct cause bpf_causes[] = {DUET_BPF_COUNTERS(CAUSE_ROW)};
static const struct cause agent_causes[] = {DUET_AGENT_COUNTERS(CAUSE_ROW)};
static const struct cause loader_causes[] = {DUET_LOADER_COUNTERS(CAUSE_ROW)};

static void losses_of_bpf(const struct report *report, loss_handler handler, void *context)
{
	uint64_t counters[DUET_BPF_COUNTER_MAX];

	if (report->engine->row->standalone || engine_counters(report->engine, counters) < 0)
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

static void losses_of_loader(loss_handler handler, void *context)
{
	for (size_t i = 0; i < DUET_LOADER_COUNTER_MAX; i++)
		handler(context, loader_causes[i].name, loader_causes[i].text, loader_counters[i]);
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

void losses_each(const struct report *report, loss_handler handler, void *context)
{
	losses_of_bpf(report, handler, context);
	losses_of_agents(report, handler, context);
	losses_of_loader(handler, context);
	losses_of_walks(report, handler, context);
}
