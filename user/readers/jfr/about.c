/* SPDX-License-Identifier: MIT */
#include "readers/jfr/about.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define JVMS_MAX 4096
#define FLAGS_MAX 1024
#define FLAG_NAME_MAX 100
#define PART_MAX 255 /* bytes of the name of a JVM, and of its version */
#define LOAD_ALL NS_PER_SEC /* notes have CPU time, the event has parts of it */
#define PPM 1e6
#define SET_BY_OPTION "Command line"

struct about_event {
	struct jfr_about *about;
	const struct jfr_value *values;
	uint64_t time_ns;
};

static uint32_t text_of(const struct about_event *event, int slot)
{
	return jfr_constants_string(event->about->constants, &event->values[slot].text);
}

static const char *chars_of(const struct about_event *event, int slot)
{
	return intern_text(&event->about->profile->strings, text_of(event, slot));
}

static uint64_t number_of(const struct about_event *event, int slot)
{
	return event->values[slot].number;
}

/* A number of the event times `factor`. 0 for what is no number, or too large. */
static uint64_t scaled(const struct about_event *event, int slot, double factor)
{
	uint32_t bits = (uint32_t)number_of(event, slot);
	double product;
	float number;

	memcpy(&number, &bits, sizeof(number));
	product = (double)number * factor;
	return product > 0 && product < (double)INT64_MAX ? (uint64_t)(product + 0.5) : 0;
}

static int add_note(const struct about_event *event, struct profile_note note)
{
	struct profile *profile = event->about->profile;

	note.time_ns = event->time_ns;
	return profile->notes.len < PROFILE_NOTES_MAX ? vec_push(&profile->notes, note) : 0;
}

/* Adds a note that has no time of its own, unless it is there already. */
static int add_once(const struct about_event *event, struct profile_note note)
{
	const uint64_t about[] = {note.kind, note.pid, note.numbers[0], note.numbers[1], note.texts[0], note.texts[1]};
	uint64_t key = hash_bytes(about, sizeof(about), 0), known;
	int err;

	if (map_get(&event->about->known, key, &known))
		return 0;
	err = add_note(event, note);
	return err ? err : map_put(&event->about->known, key, 1);
}

enum { PROPERTY_KEY = 1, PROPERTY_VALUE };

static int add_property(const struct about_event *event)
{
	const struct profile_note note = {
		.kind = PROFILE_NOTE_PROPERTY,
		.pid = event->about->constants->pid,
		.texts = {text_of(event, PROPERTY_KEY), text_of(event, PROPERTY_VALUE)},
	};

	return add_once(event, note);
}

enum { LIBRARY_NAME = 1, LIBRARY_BASE, LIBRARY_TOP };

static int add_library(const struct about_event *event)
{
	const struct profile_note note = {
		.kind = PROFILE_NOTE_LIBRARY,
		.pid = event->about->constants->pid,
		.numbers = {number_of(event, LIBRARY_BASE), number_of(event, LIBRARY_TOP)},
		.texts = {text_of(event, LIBRARY_NAME)},
	};

	return add_once(event, note);
}

enum { LOAD_USER = 1, LOAD_SYSTEM, LOAD_MACHINE };

static int add_load(const struct about_event *event)
{
	const struct profile_note note = {
		.kind = PROFILE_NOTE_LOAD,
		.numbers = {scaled(event, LOAD_USER, LOAD_ALL), scaled(event, LOAD_SYSTEM, LOAD_ALL),
			    scaled(event, LOAD_MACHINE, LOAD_ALL), LOAD_ALL},
	};

	return add_note(event, note);
}

enum { HEAP_GC = 1, HEAP_WHEN, HEAP_SPACE, HEAP_USED };
enum { SPACE_COMMITTED, SPACE_RESERVED };

static int add_heap(const struct about_event *event)
{
	struct jfr_about *about = event->about;
	const char *when = intern_text(&about->profile->strings, jfr_constants_name(about->constants, JFR_POOL_GC_WHEN,
										    number_of(event, HEAP_WHEN)));
	struct jfr_cursor space = {
		.bytes = about->constants->bytes,
		.at = event->values[HEAP_SPACE].at,
		.end = event->values[HEAP_SPACE].end,
	};
	struct jfr_value values[JFR_SLOTS] = {0};
	struct profile_note note = {
		.kind = PROFILE_NOTE_HEAP,
		.pid = event->about->constants->pid,
		.numbers = {number_of(event, HEAP_GC), number_of(event, HEAP_USED)},
	};

	if (strcmp(when, "After GC") != 0)
		return 0;
	if (about->space && jfr_read(about->constants->types, about->space, &space, values, JFR_SLOTS)) {
		note.numbers[2] = values[SPACE_COMMITTED].number;
		note.numbers[3] = values[SPACE_RESERVED].number;
	}
	return add_note(event, note);
}

enum { THREADS_FIRST = 1 };

static int add_threads(const struct about_event *event)
{
	struct profile_note note = {.kind = PROFILE_NOTE_THREADS, .pid = event->about->constants->pid};

	for (int i = 0; i < 4; i++)
		note.numbers[i] = number_of(event, THREADS_FIRST + i);
	return add_note(event, note);
}

static struct jfr_jvm *jvm_of(struct jfr_constants *constants, uint32_t pid)
{
	uint64_t index = constants->jvms.len;

	if (map_get(&constants->jvm_ids, pid, &index))
		return &constants->jvms.items[index];
	if (index >= JVMS_MAX || map_put(&constants->jvm_ids, pid, index) < 0 ||
	    vec_push(&constants->jvms, (struct jfr_jvm){.pid = pid}) < 0)
		return NULL;
	return &constants->jvms.items[index];
}

enum { JVM_PID = 1, JVM_NAME, JVM_VERSION, JVM_OPTIONS, JVM_PROGRAM };

/* "17.0.15+6" in "OpenJDK 64-Bit Server VM (17.0.15+6) for linux-amd64 …", which is the JDK's text. */
static void add_version(struct buf *out, const char *version)
{
	const char *bracket = strchr(version, '('), *end = bracket ? strchr(bracket, ')') : NULL;

	if (end)
		buf_printf(out, " %.*s", end - bracket < PART_MAX ? (int)(end - bracket - 1) : PART_MAX, bracket + 1);
	else if (*version)
		buf_printf(out, " %.*s", PART_MAX, version);
}

static int add_jvm(const struct about_event *event)
{
	struct jfr_about *about = event->about;
	const struct profile_note note = {
		.kind = PROFILE_NOTE_COMMAND,
		.pid = (uint32_t)number_of(event, JVM_PID),
		.texts = {text_of(event, JVM_OPTIONS), text_of(event, JVM_PROGRAM)},
	};
	struct jfr_jvm *jvm = jvm_of(about->constants, note.pid);
	BUF(runtime);

	about->constants->pid = note.pid;
	buf_printf(&runtime, "%.*s", PART_MAX, chars_of(event, JVM_NAME));
	add_version(&runtime, chars_of(event, JVM_VERSION));
	if (jvm && runtime.len && !runtime.failed)
		jvm->runtime = intern_str(&about->profile->strings, runtime.data);
	return add_once(event, note);
}

enum { FLAG_NAME = 1, FLAG_VALUE, FLAG_ORIGIN };

static int add_flag(const struct about_event *event, const char *value)
{
	struct jfr_about *about = event->about;
	struct intern *strings = &about->profile->strings;
	const char *origin = intern_text(
		strings, jfr_constants_name(about->constants, JFR_POOL_FLAG_ORIGIN, number_of(event, FLAG_ORIGIN)));
	BUF(flag);
	uint32_t id;

	if (strcmp(origin, SET_BY_OPTION) != 0 || about->flags.len >= FLAGS_MAX)
		return 0;
	buf_printf(&flag, "%.*s=%s", FLAG_NAME_MAX, chars_of(event, FLAG_NAME), value);
	id = flag.failed ? 0 : intern_str(strings, flag.data);
	return vec_push(&about->flags, id);
}

static int add_switch(const struct about_event *event)
{
	return add_flag(event, number_of(event, FLAG_VALUE) ? "true" : "false");
}

static int add_number(const struct about_event *event, uint64_t number, bool is_signed)
{
	char text[24];

	snprintf(text, sizeof(text), is_signed ? "%" PRId64 : "%" PRIu64, number);
	return add_flag(event, text);
}

static int add_int(const struct about_event *event)
{
	return add_number(event, (uint64_t)(int32_t)number_of(event, FLAG_VALUE), true);
}

static int add_long(const struct about_event *event)
{
	return add_number(event, number_of(event, FLAG_VALUE), true);
}

static int add_unsigned_int(const struct about_event *event)
{
	return add_number(event, (uint32_t)number_of(event, FLAG_VALUE), false);
}

static int add_unsigned_long(const struct about_event *event)
{
	return add_number(event, number_of(event, FLAG_VALUE), false);
}

static void set_text(uint32_t *host, uint32_t text)
{
	*host = *host ? *host : text;
}

enum { SYSTEM_VERSION = 1 };

static int add_system(const struct about_event *event)
{
	set_text(&event->about->profile->host.os_name, text_of(event, SYSTEM_VERSION));
	return 0;
}

enum { CPU_MODEL = 1, CPU_FLAGS, CPU_THREADS };

static int add_cpu(const struct about_event *event)
{
	struct profile_host *host = &event->about->profile->host;

	set_text(&host->cpu_model, text_of(event, CPU_MODEL));
	set_text(&host->cpu_flags, text_of(event, CPU_FLAGS));
	set_text(&host->processors, (uint32_t)number_of(event, CPU_THREADS));
	return 0;
}

enum { MEMORY_TOTAL = 1 };

static int add_memory(const struct about_event *event)
{
	struct profile_host *host = &event->about->profile->host;

	host->memory_bytes = host->memory_bytes ? host->memory_bytes : number_of(event, MEMORY_TOTAL);
	return 0;
}

/* clang-format off */
enum {
	PROCESS_PID = 1, PROCESS_PARENT, PROCESS_NAME, PROCESS_COMMAND, PROCESS_UID, PROCESS_STATE, PROCESS_START,
	PROCESS_USER, PROCESS_SYSTEM, PROCESS_LOAD, PROCESS_THREADS, PROCESS_SIZE, PROCESS_RESIDENT, PROCESS_ANONYMOUS,
	PROCESS_FILES, PROCESS_SHARED, PROCESS_MINOR, PROCESS_MAJOR, PROCESS_READ, PROCESS_WRITTEN,
};
/* clang-format on */

static int add_process(const struct about_event *event)
{
	const struct profile_usage usage = {
		.time_ns = event->time_ns,
		.started_ms = number_of(event, PROCESS_START),
		.user_ns = scaled(event, PROCESS_USER, NS_PER_SEC),
		.system_ns = scaled(event, PROCESS_SYSTEM, NS_PER_SEC),
		.load_ppm = scaled(event, PROCESS_LOAD, PPM),
		.size_bytes = number_of(event, PROCESS_SIZE),
		.resident_bytes = number_of(event, PROCESS_RESIDENT),
		.anonymous_bytes = number_of(event, PROCESS_ANONYMOUS),
		.file_bytes = number_of(event, PROCESS_FILES),
		.shared_bytes = number_of(event, PROCESS_SHARED),
		.minor_faults = number_of(event, PROCESS_MINOR),
		.major_faults = number_of(event, PROCESS_MAJOR),
		.read_bytes = number_of(event, PROCESS_READ),
		.written_bytes = number_of(event, PROCESS_WRITTEN),
		.pid = (uint32_t)number_of(event, PROCESS_PID),
		.parent = (uint32_t)number_of(event, PROCESS_PARENT),
		.uid = (uint32_t)number_of(event, PROCESS_UID),
		.threads = (uint32_t)number_of(event, PROCESS_THREADS),
		.state = (uint8_t)number_of(event, PROCESS_STATE),
		.name = text_of(event, PROCESS_NAME),
		.command = text_of(event, PROCESS_COMMAND),
	};
	int err = profile_add_usage(event->about->profile, &usage);

	return err == -EFBIG ? 0 : err; /* too many are dropped */
}

/* clang-format off */
#define FLAG_FIELDS {"startTime", "name", "value", "origin"}

static const struct {
	struct jfr_wanted type;
	int (*add)(const struct about_event *event);
} abouts[] = {
	{{"jdk.JVMInformation", {"startTime", "pid", "jvmName", "jvmVersion", "jvmArguments", "javaArguments"}},
		add_jvm},
	{{"jdk.InitialSystemProperty", {"startTime", "key", "value"}}, add_property},
	{{"jdk.NativeLibrary", {"startTime", "name", "baseAddress", "topAddress"}}, add_library},
	{{"jdk.CPULoad", {"startTime", "jvmUser", "jvmSystem", "machineTotal"}}, add_load},
	{{"jdk.GCHeapSummary", {"startTime", "gcId", "when", "heapSpace", "heapUsed"}}, add_heap},
	{{"jdk.JavaThreadStatistics", {
		"startTime", "activeCount", "daemonCount", "accumulatedCount", "peakCount"}}, add_threads},
	{{"jdk.OSInformation", {"startTime", "osVersion"}}, add_system},
	{{"jdk.CPUInformation", {"startTime", "cpu", "description", "hwThreads"}}, add_cpu},
	{{"jdk.PhysicalMemory", {"startTime", "totalSize"}}, add_memory},
	{{"profiler.ProcessSample", {
		"startTime", "pid", "ppid", "name", "cmdLine", "uid", "state", "processStartTime", "cpuUser",
		"cpuSystem", "cpuPercent", "threads", "vmSize", "vmRss", "rssAnon", "rssFiles", "rssShmem",
		"minorFaults", "majorFaults", "ioRead", "ioWrite"}}, add_process},
	{{"jdk.BooleanFlag", FLAG_FIELDS}, add_switch},
	{{"jdk.IntFlag", FLAG_FIELDS}, add_int},
	{{"jdk.UnsignedIntFlag", FLAG_FIELDS}, add_unsigned_int},
	{{"jdk.LongFlag", FLAG_FIELDS}, add_long},
	{{"jdk.UnsignedLongFlag", FLAG_FIELDS}, add_unsigned_long},
};
/* clang-format on */

#define ABOUTS (sizeof(abouts) / sizeof(*abouts))

_Static_assert(ABOUTS <= JFR_ABOUTS, "struct jfr_about has room for each type");

void jfr_about_begin(struct jfr_about *about)
{
	static const struct jfr_wanted space = {"jdk.types.VirtualSpace", {"committedSize", "reservedSize"}};

	for (size_t i = 0; i < ABOUTS; i++)
		about->types[i] = jfr_type_wanted(about->constants->types, &abouts[i].type);
	about->space = jfr_type_wanted(about->constants->types, &space);
	vec_clear(&about->flags);
}

int jfr_about_find(const struct jfr_about *about, const struct jfr_type *type)
{
	for (size_t i = 0; type && i < ABOUTS; i++)
		if (about->types[i] == type)
			return (int)i;
	return -1;
}

int jfr_about_add(struct jfr_about *about, int type, const struct jfr_value values[JFR_SLOTS_WIDE], uint64_t time_ns)
{
	const struct about_event event = {.about = about, .values = values, .time_ns = time_ns};

	return abouts[type].add(&event);
}

static int compare_flags(const void *a, const void *b, void *strings)
{
	return strcmp(intern_text(strings, *(const uint32_t *)a), intern_text(strings, *(const uint32_t *)b));
}

/* Of several JVMs, it is not known whose flags these are. */
void jfr_about_end(struct jfr_about *about)
{
	struct jfr_constants *constants = about->constants;
	struct intern *strings = &about->profile->strings;
	BUF(lines);

	if (constants->jvms.len != 1 || !about->flags.len)
		return;
	qsort_r(about->flags.items, about->flags.len, sizeof(*about->flags.items), compare_flags, strings);
	for (size_t i = 0; i < about->flags.len; i++)
		if (!i || about->flags.items[i] != about->flags.items[i - 1])
			buf_printf(&lines, "%s\n", intern_text(strings, about->flags.items[i]));
	if (!lines.failed)
		constants->jvms.items[0].vm_flags = intern_str(strings, lines.data);
}

void jfr_about_release(struct jfr_about *about)
{
	map_release(&about->known);
	vec_release(&about->flags);
}
