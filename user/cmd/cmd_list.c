/* SPDX-License-Identifier: MIT */
/* `duet list`: the JVMs and containers that run on this host, the events, and the formats. */
#include <stdio.h>

#include "cmd/cmd.h"
#include "cmd/list_jvms.h"
#include "collect/collector.h"
#include "collect/engines.h"
#include "event/event.h"
#include "readers/reader.h"
#include "writers/writer.h"

static void print_event(const char *name, const char *help, bool is_available)
{
	printf("  %-25s %s%s\n", name, help, is_available ? "" : " (not available here)");
}

static void list_events(void)
{
	puts("Events (-e; `duet check` says why some are not available here):");
	for (const struct event *const *event = event_table; *event; event++)
		print_event((*event)->name, (*event)->help, collector_has_event(*event));
	for (const struct event_family *family = event_families; family->form; family++)
		print_event(family->form, family->help, collector_has_family(family));
}

static void list_engines(void)
{
	puts("Engines (--engine; `duet check` says which can run here):");
	for (const struct engine *engine = engines; engine->name; engine++)
		printf("  %-16s %s\n", engine->name, engine->help);
}

static void list_formats(void)
{
	puts("Formats (-o):");
	for (const struct writer *const *writer = writers; *writer; writer++)
		printf("  %-16s %s\n", (*writer)->name, (*writer)->help);
}

static void list_readers(void)
{
	puts("Formats that duet convert reads:");
	for (const struct reader *const *reader = readers; *reader; reader++)
		printf("  %-16s %s\n", (*reader)->name, (*reader)->help);
}

static int run(void *options, const struct command_words *words)
{
	int err = list_jvms();

	(void)options;
	(void)words;
	list_events();
	list_engines();
	list_formats();
	list_readers();
	return err < 0;
}

const struct command cmd_list = {
	.name = "list",
	.summary = "the JVMs and containers that run here, events, formats",
	.usage = "duet list    the JVMs and containers that run here, and what -e and -o of duet record take\n",
	.rows = command_no_rows,
	.options_bytes = sizeof(struct command_no_options),
	.takes = "no words",
	.run = run,
};
