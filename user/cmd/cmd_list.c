/* SPDX-License-Identifier: MIT */
/* `duet list`: the events, the output formats, and the JVMs that run on this host. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "collect/collector.h"
#include "engine/engines.h"
#include "event/event.h"
#include "in/reader.h"
#include "out/writer.h"
#include "proc/helper.h"
#include "proc/process.h"

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

/* The names of a process and of its file may contain any bytes. */
static void print_clean(const char *text)
{
	struct buf clean;

	buf_init(&clean);
	text_add_line(&clean, text);
	puts(clean.data);
	buf_release(&clean);
}

static void list_jvm(struct process_table *table, pid_t pid)
{
	struct process *process = process_get(table, pid, 0);
	struct buf line;

	if (!process || process->exited || !maps_find_file(&process->maps, "libjvm.so"))
		return;
	buf_init(&line);
	buf_printf(&line, "  %-8d %-16s %s", (int)pid, process->comm, process->executable ? process->executable : "");
	print_clean(line.data);
	buf_release(&line);
}

static int list_jvms(void)
{
	struct process_table table;
	pid_t *pids;
	size_t count;
	int err = process_list(&pids, &count);

	if (err < 0)
		return err;
	puts("JVMs:");
	if (process_is_hidden(1))
		log_warn("/proc hides processes of other users (mounted with hidepid): run duet as root to see them");
	process_table_init(&table);
	helper_start();
	for (size_t i = 0; i < count; i++)
		list_jvm(&table, pids[i]);
	helper_end();
	process_table_release(&table);
	free(pids);
	return 0;
}

static int run(void *options, const struct command_words *words)
{
	(void)options;
	(void)words;
	list_events();
	list_engines();
	list_formats();
	list_readers();
	return list_jvms() < 0;
}

const struct command cmd_list = {
	.name = "list",
	.summary = "events, formats, and the JVMs that run here",
	.usage = "duet list    what -e and -o of duet record take, and the JVMs that run here\n",
	.rows = command_no_rows,
	.options_bytes = sizeof(struct command_no_options),
	.takes = "no words",
	.run = run,
};
