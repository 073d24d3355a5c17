/* SPDX-License-Identifier: MIT */
/* `duet check`: for each engine, whether this host can run it, and if not, what to change. */
#include <stdbool.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "collect/collector.h"
#include "engine/engines.h"

static void print_probe(const struct collector_probe *probe)
{
	printf("  %-4s %s\n", probe->ok ? "yes" : probe->required ? "NO" : "no", probe->name);
	if (!probe->ok && probe->detail[0])
		printf("       %s\n", probe->detail);
}

static bool check_bpf(void)
{
	struct collector_probe probes[COLLECTOR_PROBES_MAX];
	size_t count = collector_probe(probes, COLLECTOR_PROBES_MAX);
	bool ok = collector_is_ready(probes, count);

	printf("bpf: %s\n", ok ? "ready: kernel, native and Java frames of every process" : "not available here");
	for (size_t i = 0; i < count; i++)
		print_probe(&probes[i]);
	return ok;
}

static void check_standalone(const struct engine *engine)
{
	struct buf why;

	buf_init(&why);
	if (!engine->usable || engine->usable(&why))
		printf("%s: ready: %s\n", engine->name, engine->help);
	else
		printf("%s: not available here\n       %s\n", engine->name, why.data);
	buf_release(&why);
}

static int run(void *options, const struct command_words *words)
{
	bool bpf = check_bpf();
	struct buf why;

	(void)options;
	(void)words;
	for (int i = 0; engines[i].name; i++)
		if (engines[i].standalone)
			check_standalone(&engines[i]);
	buf_init(&why);
	printf("`duet record` will use %s\n", engines[bpf ? ENGINE_BPF : engine_standalone(NULL, &why)].name);
	buf_release(&why);
	return 0;
}

const struct command cmd_check = {
	.name = "check",
	.summary = "what this host can do, and how to get the rest",
	.usage = "duet check    for each engine: whether it can run on this host and, if not, what to change\n",
	.rows = command_no_rows,
	.options_bytes = sizeof(struct command_no_options),
	.takes = "no words",
	.run = run,
};
