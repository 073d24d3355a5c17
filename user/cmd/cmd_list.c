/* SPDX-License-Identifier: MIT */
/* `duet list`: the JVMs and containers that run on this host, the events, and the formats. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "collect/collector.h"
#include "collect/engines.h"
#include "event/event.h"
#include "readers/reader.h"
#include "subject/program.h"
#include "writers/writer.h"

#define LOOK_NS (50 * NS_PER_MS)

enum column { COLUMN_PID, COLUMN_CPU, COLUMN_JDK, COLUMN_USER, COLUMN_CONTAINER, COLUMN_PROGRAM, COLUMNS };

struct line {
	struct buf cells[COLUMNS]; /* safe to print */
};

struct table {
	struct vec(struct line) lines; /* the first is the head */
	size_t widths[COLUMNS]; /* bytes */
};

/* What processes say of themselves may have any bytes. */
static void add_cell(struct table *table, struct line *line, enum column column, const char *text)
{
	struct buf *cell = &line->cells[column];

	text_add_line(cell, *text ? text : "-");
	if (cell->len > table->widths[column])
		table->widths[column] = cell->len;
}

/* Returns NULL when out of memory. */
static struct line *add_line(struct table *table)
{
	struct line *line;

	if (vec_push(&table->lines, (struct line){0}))
		return NULL;
	line = &table->lines.items[table->lines.len - 1];
	for (enum column column = 0; column < COLUMNS; column++)
		buf_init(&line->cells[column]);
	return line;
}

static void print_table(const struct table *table)
{
	for (size_t i = 0; i < table->lines.len; i++) {
		const struct buf *cells = table->lines.items[i].cells;

		for (enum column column = 0; column < COLUMN_PROGRAM; column++)
			printf("  %*s", (int)table->widths[column] * (column <= COLUMN_CPU ? 1 : -1),
			       cells[column].data);
		printf("  %s\n", cells[COLUMN_PROGRAM].data);
	}
}

static void release_table(struct table *table)
{
	for (size_t i = 0; i < table->lines.len; i++)
		for (enum column column = 0; column < COLUMNS; column++)
			buf_release(&table->lines.items[i].cells[column]);
	vec_release(&table->lines);
}

static void add_number(struct table *table, struct line *line, enum column column, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	add_cell(table, line, column, text);
}

/* Looks only in /etc/passwd: name services may use the network. */
static void add_user(struct table *table, struct line *line, uid_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *user = NULL;

	while (file && (user = fgetpwent(file)) && user->pw_uid != uid)
		;
	if (user)
		add_cell(table, line, COLUMN_USER, user->pw_name);
	else
		add_number(table, line, COLUMN_USER, uid);
	if (file)
		fclose(file);
}

static void add_container(struct table *table, struct line *line, struct owners *owners, const struct process *process)
{
	const struct container *container = owners_container(owners, process);
	BUF(label);

	if (container->ref.kind != CONTAINER_NONE)
		container_label(container, &label);
	add_cell(table, line, COLUMN_CONTAINER, label.data);
}

static void add_jvm(struct table *table, struct owners *owners, const struct running_jvm *jvm)
{
	struct line *line = add_line(table);
	BUF(version);

	if (!line)
		return;
	(void)program_java_version(CHARGE_OWN(jvm->process->living), jvm->process, &version);
	add_number(table, line, COLUMN_PID, (uint64_t)jvm->process->pid);
	add_cell(table, line, COLUMN_JDK, version.data);
	add_user(table, line, jvm->process->uid);
	add_container(table, line, owners, jvm->process);
	add_cell(table, line, COLUMN_PROGRAM, jvm->program);
}

static void add_share(struct table *table, struct line *line, double percent)
{
	char text[16];

	snprintf(text, sizeof(text), "%.1f %%", percent);
	add_cell(table, line, COLUMN_CPU, text);
}

struct look {
	uint64_t used_ns, time_ns;
};

static struct look look_at(const struct running_jvm *jvm)
{
	return (struct look){process_cpu_ns(jvm->process->pid), clock_monotonic_ns()};
}

/* The share of a CPU that the JVM has used since the look. */
static double percent_since(const struct look *before, const struct running_jvm *jvm)
{
	struct look now = look_at(jvm);

	if (now.used_ns <= before->used_ns)
		return 0;
	return 100.0 * (double)(now.used_ns - before->used_ns) / (double)(now.time_ns - before->time_ns);
}

/* The other cells are made meanwhile. */
static void add_jvms(struct table *table, struct owners *owners, const struct running *running)
{
	struct look *looks = calloc(running->jvms.len, sizeof(*looks));
	size_t first = table->lines.len;

	for (size_t i = 0; looks && i < running->jvms.len; i++)
		looks[i] = look_at(&running->jvms.items[i]);
	for (size_t i = 0; looks && i < running->jvms.len; i++)
		add_jvm(table, owners, &running->jvms.items[i]);
	clock_sleep(LOOK_NS);
	for (size_t i = 0; looks && first + i < table->lines.len; i++)
		add_share(table, &table->lines.items[first + i], percent_since(&looks[i], &running->jvms.items[i]));
	free(looks);
}

static void print_jvms(const struct running *running, struct owners *owners)
{
	static const char *const heads[] = {"pid", "CPU now", "JDK", "user", "container", "program"};
	struct table table = {0};
	struct line *head = add_line(&table);

	for (enum column column = 0; head && column < COLUMNS; column++)
		add_cell(&table, head, column, heads[column]);
	add_jvms(&table, owners, running);
	print_table(&table);
	release_table(&table);
}

static void print_container(void *context, uint64_t cgroup_id, const struct container *container)
{
	bool *has_some = context;
	BUF(label);
	BUF(line);

	if (!*has_some)
		puts("Containers (--container NAME):");
	*has_some = true;
	container_label(container, &label);
	text_add_line(&line, label.data);
	buf_printf(&line, "  %s ", container_kind_name(container->ref.kind));
	text_add_line(&line, container->ref.id);
	printf("  %s\n", line.data);
}

/* Prints a table of the JVMs, and the containers. Returns 0 or -errno. */
static int list_jvms(void)
{
	bool has_containers = false;
	struct running running;
	struct owners owners;
	int err = running_find(&running, NULL);

	if (process_is_hidden(1))
		log_warn("/proc hides processes of other users (mounted with hidepid): run duet as root to see them");
	owners_open(&owners, NULL, false);
	puts(running.jvms.len ? "JVMs (duet PID or duet PROGRAM records one):" : "JVMs: none runs here");
	if (running.jvms.len)
		print_jvms(&running, &owners);
	containers_each(&owners.containers, print_container, &has_containers);
	owners_release(&owners);
	running_release(&running);
	return err;
}

void list_jvm_choices(struct buf *out)
{
	struct running running;

	(void)running_find(&running, NULL);
	for (size_t i = 0; i < running.jvms.len; i++) {
		buf_printf(out, "%d\t", running.jvms.items[i].process->pid);
		text_add_line(out, running.jvms.items[i].program);
		buf_add_char(out, '\n');
	}
	running_release(&running);
}

static void add_choice(void *context, uint64_t cgroup_id, const struct container *container)
{
	struct buf *out = context;

	text_add_line(out, container->names.name[0] ? container->names.name : container->ref.id);
	buf_add_char(out, '\n');
}

void list_container_choices(struct buf *out)
{
	struct containers containers;

	containers_open(&containers, "/");
	containers_each(&containers, add_choice, out);
	containers_release(&containers);
}

static void print_event(const char *name, const char *help, bool is_available)
{
	printf("  %-25s %s%s\n", name, help, is_available ? "" : " (not available here)");
}

static void list_events(void)
{
	puts("Events (-e; `duet check` says why some are not available here):");
	for (const struct event *const *event = event_table; *event; event++)
		print_event((*event)->name, (*event)->help, (*event)->agent || collector_has_event(*event));
	for (const struct event_family *family = event_families; family->form; family++)
		print_event(family->form, family->help, collector_has_family(family));
}

static int run(void *options, const struct command_words *words)
{
	int err = list_jvms();

	list_events();
	puts("Engines (--engine; `duet check` says which can run here):");
	for (const struct engine *engine = engines; engine->name; engine++)
		printf("  %-16s %s\n", engine->name, engine->help);
	puts("Formats (-o):");
	for (const struct writer *const *writer = writers; *writer; writer++)
		printf("  %-16s %s\n", (*writer)->name, (*writer)->help);
	puts("Formats that duet convert reads:");
	for (const struct reader *const *reader = readers; *reader; reader++)
		printf("  %-16s %s\n", (*reader)->name, (*reader)->help);
	return err < 0;
}

const struct command cmd_list = {
	.name = "list",
	.summary = "the JVMs and containers that run here, events, formats",
	.usage = "duet list    the JVMs and containers that run here, and what -e and -o of duet record take\n",
	.rows = command_no_rows,
	.takes = "no words",
	.run = run,
};
