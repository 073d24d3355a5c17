/* SPDX-License-Identifier: MIT */
/*
 * `duet check`: for each engine, whether this host can run it, and if not, what to change; and where BPF samples each
 * event.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/box.h"
#include "cmd/cmd.h"
#include "collect/collector.h"
#include "collect/engines.h"
#include "collect/kernel/returns.h"
#include "event/event.h"

static void print_probe(const struct collector_probe *probe)
{
	printf("  %-4s %s\n", probe->ok ? "yes" : probe->required ? "NO" : "no", probe->name);
	if (!probe->ok && probe->detail[0])
		printf("       %s\n", probe->detail);
}

static bool is_of_agent(const struct event *event)
{
	return event->program == DUET_PROGRAM_NONE;
}

static bool is_missing(const struct event *event)
{
	return !is_of_agent(event) && !collector_has_event(event);
}

static bool is_at_hook(const struct event *event)
{
	return event_is_sleep(event) && !is_missing(event);
}

static bool is_perf(const struct event *event)
{
	return event->program == DUET_PROGRAM_PERF && !is_missing(event);
}

static bool is_at_calls(const struct event *event)
{
	return !is_of_agent(event) && event->program != DUET_PROGRAM_PERF && !event_is_sleep(event);
}

/* Prints one line: the events that belong to a place. */
static void print_place(const char *place, bool (*belongs)(const struct event *event))
{
	bool has_some = false;

	for (size_t i = 0; event_table[i]; i++) {
		if (!belongs(event_table[i]))
			continue;
		printf("%s%s%s", has_some ? " " : "  ", has_some ? "" : place, event_table[i]->name);
		has_some = true;
	}
	if (has_some)
		printf("\n");
}

static void print_places(void)
{
	struct returns hooks = returns_choose(DUET_RETURN_NONE);
	char place[128];

	print_place("by a perf event on each CPU: ", is_perf);
	snprintf(place, sizeof(place), "at hook %s%s%s: ", return_name(hooks.first),
		 hooks.fallback ? ", and without rseq(2) at " : "", hooks.fallback ? return_name(hooks.fallback) : "");
	print_place(place, is_at_hook);
	print_place("at system calls: ", is_at_calls);
	print_place("by an agent in the JVM: ", is_of_agent);
	print_place("not on this machine: ", is_missing);
}

static bool check_bpf(void)
{
	struct collector_probe probes[COLLECTOR_PROBES_MAX];
	size_t count = collector_probe(probes, COLLECTOR_PROBES_MAX);
	bool ok = collector_is_ready(probes, count);

	printf("bpf: %s\n", ok ? "ready: kernel, native and Java frames of every process" : "not available here");
	for (size_t i = 0; i < count; i++)
		print_probe(&probes[i]);
	if (ok)
		print_places();
	return ok;
}

static void check_standalone(const struct engine *engine)
{
	BUF(why);

	if (!engine->usable || engine->usable(&why)) {
		printf("%s: ready: %s\n", engine->name, engine->help);
		printf("       -e cpu, wall, offcpu%s, and what the JVM reports\n",
		       engine->counts ? ", page-faults" : "");
	} else {
		printf("%s: not available here\n       %s\n", engine->name, why.data);
	}
}

static void print_box(void)
{
	int lacks = box_try();
	BUF(walls);

	box_describe(lacks < 0 ? 0 : (unsigned int)lacks, &walls);
	if (lacks < 0)
		printf("recordings, and files of processes, are not read: no box for that: %s\n", strerror(-lacks));
	else
		printf("recordings, and files of processes, are read in a box: %s\n", walls.data);
}

static int run(void *options, const struct command_words *words)
{
	bool bpf = check_bpf();
	BUF(why);

	for (int i = 0; engines[i].name; i++)
		if (engines[i].standalone)
			check_standalone(&engines[i]);
	print_box();
	printf("`duet record` will use %s\n", engines[bpf ? ENGINE_BPF : engine_standalone(NULL, &why)].name);
	return 0;
}

const struct command cmd_check = {
	.name = "check",
	.summary = "what this host can do, and how to get the rest",
	.usage = "duet check    for each engine: whether it can run on this host and, if not, what to change\n",
	.rows = command_no_rows,
	.takes = "no words",
	.run = run,
};
