/* SPDX-License-Identifier: MIT */
#include "subject/vitals.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attach/hsperfdata.h"
#include "base/parts.h"
#include "base/redact.h"
#include "proc/process.h"
#include "proc/room.h"
#include "runtime/application.h"
#include "subject/host.h"
#include "subject/words.h"

#define TEXT_BYTES 8192 /* of a counter: PROFILE_TEXT_MAX */
#define GENERATIONS 3
#define SPACES 4 /* of a generation: eden and two survivor spaces, or one */
#define LIBRARIES_MAX 4096 /* of one JVM */
#define KEY_MAX 255 /* bytes of a property that has no value */
#define PAIRS_MAX (8u << 20) /* bytes of all that is told at once: arguments have 2 MB */

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

/* Adds a property: its key and its value with a NUL after each. */
static void add_property(struct buf *out, const char *key, size_t len, const char *value)
{
	buf_add(out, key, len);
	buf_add(out, "", 1);
	redact_value(key, len, value, out);
	buf_add(out, "", 1);
}

/* There may be none yet: JDK 8 counts them only after its agents have begun. */
static void add_counted(const struct words *words, struct buf *out)
{
	char name[64], value[TEXT_BYTES];

	for (size_t i = 0; i < sizeof(counted) / sizeof(*counted); i++) {
		snprintf(name, sizeof(name), "java.property.%s", counted[i]);
		if (!hsperfdata_string(words->counters.data, words->counters.len, name, value, sizeof(value)))
			add_property(out, counted[i], strlen(counted[i]), value);
	}
}

/* Those that options of the command line set: -Dkey=value. */
static void add_given(const struct words *words, struct buf *out)
{
	const struct buf *arguments = &words->arguments;
	const char *program = application_find(arguments->data, arguments->len);
	const char *end = program ? program : arguments->data + arguments->len;

	for (const char *word = arguments->data; word < end; word += strlen(word) + 1) {
		const char *value = strchr(word, '=');

		if (!strncmp(word, "-D", 2) && word[2])
			add_property(out, word + 2, strnlen(word + 2, value ? (size_t)(value - word - 2) : KEY_MAX),
				     value ? value + 1 : "");
	}
}

/* Adds the options, and the program with its arguments. */
static void add_command(const struct words *words, struct buf *out)
{
	const struct buf *arguments = &words->arguments;
	const char *end = arguments->data + arguments->len, *first = arguments->data + strlen(arguments->data) + 1;
	const char *program = application_find(arguments->data, arguments->len);

	if (!arguments->len || first > end)
		return;
	program = program ? program : end;
	redact_arguments(first, (size_t)(program - first), out);
	buf_add(out, "", 1);
	redact_arguments(program, (size_t)(end - program), out);
	buf_add(out, "", 1);
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

__attribute__((format(printf, 2, 3))) static uint64_t number_of(const struct words *words, const char *format, ...)
{
	uint64_t number = 0;
	char name[64];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	(void)hsperfdata_number(words->counters.data, words->counters.len, name, &number);
	return number;
}

/* The generations of G1 and of the later collectors share one range of addresses. */
static bool shares_range(const struct words *words)
{
	char name[64] = "";

	(void)hsperfdata_string(words->counters.data, words->counters.len, "sun.gc.collector.0.name", name,
				sizeof(name));
	return !strstr(name, "PSScavenge") && !strstr(name, "Copy") && !strstr(name, "PCopy") &&
	       !strstr(name, "Parallel") && !strstr(name, "Serial");
}

static void add_heap(const struct words *words, uint64_t heap[4])
{
	uint64_t most = 0, sum = 0;

	for (int i = 0; i < GENERATIONS; i++) {
		uint64_t reserved = number_of(words, "sun.gc.generation.%d.maxCapacity", i);

		heap[0] += number_of(words, "sun.gc.collector.%d.invocations", i);
		for (int space = 0; space < SPACES; space++)
			heap[1] += number_of(words, "sun.gc.generation.%d.space.%d.used", i, space);
		heap[2] += number_of(words, "sun.gc.generation.%d.capacity", i);
		sum += reserved;
		most = reserved > most ? reserved : most;
	}
	heap[3] = shares_range(words) ? most : sum;
}

/* What a parser finds. */
struct counts {
	uint64_t heap[4], threads[4]; /* numbers of the notes */
};

enum { WANTS_GIVEN = 1 << 0, WANTS_COUNTED = 1 << 1 };

/* Answers with the counts, and three lists of pairs: properties that are given, those that are counted, the command. */
static int vitals_work(const struct helper_task *task, struct helper_answer *answer)
{
	static const char *const names[4] = {"live", "daemon", "started", "livePeak"};
	struct counts counts = {0};
	struct words words;
	BUF(given);
	BUF(found);
	BUF(command);
	int err = words_read(&words, task);

	if (err)
		return err;
	add_heap(&words, counts.heap);
	for (int i = 0; i < 4; i++)
		counts.threads[i] = number_of(&words, "java.threads.%s", names[i]);
	if (task->number & WANTS_GIVEN) {
		add_given(&words, &given);
		add_command(&words, &command);
	}
	if (task->number & WANTS_COUNTED)
		add_counted(&words, &found);
	parts_add(&answer->text, &counts, sizeof(counts));
	parts_add(&answer->text, given.data, given.len);
	parts_add(&answer->text, found.data, found.len);
	parts_add(&answer->text, command.data, command.len);
	words_release(&words);
	return 0;
}

/* ---- the loader ---- */

/* Adds a note for each pair of the next part. Returns true if there are some. */
static bool add_pairs(struct vitals *vitals, struct profile_note note, enum profile_note_kind kind, struct parts *parts)
{
	struct buf pairs;
	const char *value, *end;
	bool has_some;

	parts_read_text(parts, &pairs, PAIRS_MAX);
	has_some = pairs.len;
	end = pairs.data + pairs.len;
	note.kind = kind;
	for (const char *key = pairs.data; key < end; key = value + strlen(value) + 1) {
		value = key + strlen(key) + 1;
		profile_add_note(vitals->profile, &note, key, value < end ? value : "");
		if (value >= end)
			break;
	}
	buf_release(&pairs);
	return has_some;
}

static void add_counts(struct vitals *vitals, struct vitals_jvm *jvm, struct profile_note note,
		       const struct counts *counts)
{
	if (grown(&jvm->collections, counts->heap[0])) {
		note.kind = PROFILE_NOTE_HEAP;
		memcpy(note.numbers, counts->heap, sizeof(counts->heap));
		profile_add_note(vitals->profile, &note, NULL, NULL);
	}
	if (memcmp(counts->threads, jvm->threads, sizeof(jvm->threads)) != 0) {
		note.kind = PROFILE_NOTE_THREADS;
		memcpy(note.numbers, counts->threads, sizeof(counts->threads));
		memcpy(jvm->threads, counts->threads, sizeof(jvm->threads));
		profile_add_note(vitals->profile, &note, NULL, NULL);
	}
}

static void ask(struct vitals *vitals, struct vitals_jvm *jvm, const struct charge *charge,
		const struct process *process, struct profile_note note)
{
	uint64_t wants = (jvm->is_recorded ? 0 : WANTS_GIVEN) | (jvm->has_properties ? 0 : WANTS_COUNTED);
	struct counts counts;
	struct helper_answer answer;
	struct parts parts = {.err = words_parse(charge, process, vitals_work, wants, &answer)};

	parts.at = answer.text.data;
	parts.left = answer.text.len;
	parts_read(&parts, &counts, sizeof(counts));
	(void)add_pairs(vitals, note, PROFILE_NOTE_PROPERTY, &parts);
	jvm->has_properties = add_pairs(vitals, note, PROFILE_NOTE_PROPERTY, &parts) || jvm->has_properties;
	(void)add_pairs(vitals, note, PROFILE_NOTE_COMMAND, &parts);
	if (!parts.err)
		add_counts(vitals, jvm, note, &counts);
	jvm->is_recorded = true;
	helper_answer_release(&answer);
}

void vitals_report(struct vitals *vitals, struct vitals_jvm *jvm, const struct process *process, uint64_t now_ns)
{
	const struct profile_note note = {.time_ns = now_ns, .pid = (uint32_t)process->pid};
	struct charge charge;

	if (!process->exited && charge_begin(&charge, process)) {
		ask(vitals, jvm, &charge, process, note);
		(void)charge_end(&charge);
	}
	add_libraries(vitals, jvm, note, process);
}
