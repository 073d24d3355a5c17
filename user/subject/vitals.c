/* SPDX-License-Identifier: MIT */
#include "subject/vitals.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attach/hsperfdata.h"
#include "proc/process.h"
#include "proc/room.h"
#include "runtime/application.h"
#include "subject/host.h"
#include "subject/program.h"

#define TEXT_BYTES 8192 /* of a counter: PROFILE_TEXT_MAX */
#define GENERATIONS 3
#define SPACES 4 /* of a generation: eden and two survivor spaces, or one */
#define LIBRARIES_MAX 4096 /* of one JVM */

void vitals_open(struct vitals *vitals, struct profile *profile)
{
	*vitals = (struct vitals){.profile = profile};
	host_read_cpu(&vitals->busy_ns, &vitals->all_ns);
}

void vitals_release(struct vitals *vitals)
{
	map_release(&vitals->libraries);
}

static void read_cpu(pid_t pid, uint64_t *ret_user_ns, uint64_t *ret_system_ns)
{
	struct proc_stat stat = {0};

	(void)proc_stat_of(&stat, pid);
	*ret_user_ns = stat.fields[STAT_USER] * NS_PER_TICK;
	*ret_system_ns = stat.fields[STAT_SYSTEM] * NS_PER_TICK;
}

struct vitals_jvm *vitals_jvm(struct vitals *vitals, const struct process *process)
{
	struct vitals_jvm *jvm;

	for (size_t i = 0; i < vitals->count; i++)
		if (vitals->jvms[i].pid == process->pid && vitals->jvms[i].start_ticks == process->start_ticks)
			return &vitals->jvms[i];
	room_set_size(ROOM_VITALS, VITALS_JVMS_MAX);
	if (vitals->count == VITALS_JVMS_MAX || !room_take(ROOM_VITALS, &process->payer, 1))
		return NULL;
	jvm = &vitals->jvms[vitals->count++];
	*jvm = (struct vitals_jvm){.pid = process->pid, .start_ticks = process->start_ticks};
	read_cpu(process->pid, &jvm->user_ns, &jvm->system_ns);
	return jvm;
}

static uint64_t grown(uint64_t *last, uint64_t now)
{
	uint64_t by = now > *last ? now - *last : 0;

	*last = now > *last ? now : *last;
	return by;
}

void vitals_report_load(struct vitals *vitals, uint64_t now_ns)
{
	struct profile_note note = {.kind = PROFILE_NOTE_LOAD, .time_ns = now_ns};
	uint64_t busy_ns, all_ns, user_ns, system_ns;

	for (size_t i = 0; i < vitals->count; i++) {
		read_cpu(vitals->jvms[i].pid, &user_ns, &system_ns);
		note.numbers[0] += grown(&vitals->jvms[i].user_ns, user_ns);
		note.numbers[1] += grown(&vitals->jvms[i].system_ns, system_ns);
	}
	host_read_cpu(&busy_ns, &all_ns);
	note.numbers[2] = grown(&vitals->busy_ns, busy_ns);
	note.numbers[3] = grown(&vitals->all_ns, all_ns);
	if (note.numbers[3])
		profile_add_note(vitals->profile, &note, NULL, NULL);
}

/* Properties that HotSpot has in its counters, as java.property.NAME. */
static const char *const counted[] = {
	"java.class.path", "java.home", "java.library.path", "java.version", "java.vm.info", "java.vm.name",
	"java.vm.specification.name", "java.vm.specification.vendor", "java.vm.specification.version",
	"java.vm.vendor", "java.vm.version", "jdk.debug", "sun.boot.class.path", "sun.boot.library.path",
	"java.ext.dirs", "java.endorsed.dirs", "jdk.module.main", "jdk.module.main.class", "jdk.module.path",
	"jdk.module.upgrade.path",
};

/* Returns false if there are none yet: JDK 8 counts them only after its agents have begun. */
static bool add_counted(struct vitals *vitals, struct profile_note note, const struct buf *counters)
{
	char name[64], value[TEXT_BYTES];
	bool has_some = false;

	note.kind = PROFILE_NOTE_PROPERTY;
	for (size_t i = 0; i < sizeof(counted) / sizeof(*counted); i++) {
		snprintf(name, sizeof(name), "java.property.%s", counted[i]);
		if (hsperfdata_string(counters->data, counters->len, name, value, sizeof(value)))
			continue;
		profile_add_note(vitals->profile, &note, counted[i], value);
		has_some = true;
	}
	return has_some;
}

/* Those that options of the command line set: -Dkey=value. */
static void add_given(struct vitals *vitals, const struct profile_note *note, const struct buf *arguments)
{
	const char *program = application_find(arguments->data, arguments->len);
	const char *end = program ? program : arguments->data + arguments->len;

	for (const char *word = arguments->data; word < end; word += strlen(word) + 1) {
		const char *value = strchr(word, '=');
		char key[256];

		if (strncmp(word, "-D", 2) != 0 || !word[2])
			continue;
		snprintf(key, sizeof(key), "%.*s", value ? (int)(value - word - 2) : (int)sizeof(key) - 1, word + 2);
		profile_add_note(vitals->profile, note, key, value ? value + 1 : "");
	}
}

/* Appends the words from `from` up to `to` with spaces between them. */
static void add_words(struct buf *out, const char *from, const char *to)
{
	for (; from < to; from += strlen(from) + 1)
		buf_printf(out, "%s%s", out->len ? " " : "", from);
}

static void add_command(struct vitals *vitals, struct profile_note *note, const struct buf *arguments)
{
	const char *end = arguments->data + arguments->len, *first = arguments->data + strlen(arguments->data) + 1;
	const char *program = application_find(arguments->data, arguments->len);
	BUF(options);
	BUF(command);

	if (!arguments->len || first > end)
		return;
	add_words(&options, first, program ? program : end);
	if (program)
		add_words(&command, program, end);
	note->kind = PROFILE_NOTE_COMMAND;
	profile_add_note(vitals->profile, note, options.data, command.data);
}

static void add_once(struct vitals *vitals, const struct charge *charge, struct profile_note note)
{
	BUF(arguments);

	note.kind = PROFILE_NOTE_PROPERTY;
	if (!program_arguments(charge, &arguments) && arguments.len) {
		add_given(vitals, &note, &arguments);
		add_command(vitals, &note, &arguments);
	}
}

/* Returns true for a library that was not added yet, or not at this place. */
static bool is_new(struct vitals *vitals, const struct vitals_jvm *jvm, const struct mapping *mapping)
{
	uint64_t key = hash_bytes(mapping->path, strlen(mapping->path), mapping->start ^ (uint64_t)jvm->pid << 48);
	uint64_t known;

	return vitals->libraries.len < VITALS_JVMS_MAX * LIBRARIES_MAX && !map_get(&vitals->libraries, key, &known) &&
	       !map_put(&vitals->libraries, key, 1);
}

/* The files of executable mappings. */
static void add_libraries(struct vitals *vitals, struct vitals_jvm *jvm, struct profile_note note,
			  const struct process *process)
{
	const struct maps *maps = &process->maps;

	if (!process->maps_ns || (jvm->maps_version && jvm->maps_version == process->maps_version))
		return;
	note.kind = PROFILE_NOTE_LIBRARY;
	for (size_t i = 0; i < maps->list.len && i < LIBRARIES_MAX; i++) {
		const struct mapping *mapping = &maps->list.items[i];
		bool is_next = i && !strcmp(mapping[-1].path, mapping->path);

		if (mapping->path[0] != '/' || is_next || !strstr(mapping->path, ".so") ||
		    !is_new(vitals, jvm, mapping))
			continue;
		note.numbers[0] = mapping->start;
		note.numbers[1] = mapping->end;
		profile_add_note(vitals->profile, &note, mapping->path, NULL);
	}
	jvm->maps_version = process->maps_version;
}

__attribute__((format(printf, 2, 3))) static uint64_t number_of(const struct buf *counters, const char *format, ...)
{
	uint64_t number = 0;
	char name[64];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	(void)hsperfdata_number(counters->data, counters->len, name, &number);
	return number;
}

/* The generations of G1 and of the later collectors share one range of addresses. */
static bool shares_range(const struct buf *counters)
{
	char name[64] = "";

	(void)hsperfdata_string(counters->data, counters->len, "sun.gc.collector.0.name", name, sizeof(name));
	return !strstr(name, "PSScavenge") && !strstr(name, "Copy") && !strstr(name, "PCopy") &&
	       !strstr(name, "Parallel") && !strstr(name, "Serial");
}

static void add_heap(struct vitals *vitals, struct vitals_jvm *jvm, struct profile_note note,
		     const struct buf *counters)
{
	uint64_t collections = 0, most = 0, sum = 0;

	for (int i = 0; i < GENERATIONS; i++)
		collections += number_of(counters, "sun.gc.collector.%d.invocations", i);
	if (!grown(&jvm->collections, collections))
		return;
	for (int i = 0; i < GENERATIONS; i++) {
		uint64_t reserved = number_of(counters, "sun.gc.generation.%d.maxCapacity", i);

		for (int space = 0; space < SPACES; space++)
			note.numbers[1] += number_of(counters, "sun.gc.generation.%d.space.%d.used", i, space);
		note.numbers[2] += number_of(counters, "sun.gc.generation.%d.capacity", i);
		sum += reserved;
		most = reserved > most ? reserved : most;
	}
	note.kind = PROFILE_NOTE_HEAP;
	note.numbers[0] = collections;
	note.numbers[3] = shares_range(counters) ? most : sum;
	profile_add_note(vitals->profile, &note, NULL, NULL);
}

static void add_threads(struct vitals *vitals, struct vitals_jvm *jvm, struct profile_note note,
			const struct buf *counters)
{
	static const char *const names[4] = {"live", "daemon", "started", "livePeak"};

	note.kind = PROFILE_NOTE_THREADS;
	for (int i = 0; i < 4; i++)
		note.numbers[i] = number_of(counters, "java.threads.%s", names[i]);
	if (!memcmp(note.numbers, jvm->threads, sizeof(jvm->threads)))
		return;
	memcpy(jvm->threads, note.numbers, sizeof(jvm->threads));
	profile_add_note(vitals->profile, &note, NULL, NULL);
}

void vitals_report(struct vitals *vitals, struct vitals_jvm *jvm, const struct process *process, uint64_t now_ns)
{
	const struct profile_note note = {.time_ns = now_ns, .pid = (uint32_t)process->pid};
	struct charge charge;
	BUF(counters);

	if (!process->exited && charge_begin(&charge, process)) {
		(void)program_counters(&charge, process, &counters);
		if (!jvm->is_recorded)
			add_once(vitals, &charge, note);
		jvm->is_recorded = true;
		jvm->has_properties = jvm->has_properties || add_counted(vitals, note, &counters);
		add_heap(vitals, jvm, note, &counters);
		add_threads(vitals, jvm, note, &counters);
		(void)charge_end(&charge);
	}
	add_libraries(vitals, jvm, note, process);
}
