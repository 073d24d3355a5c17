/* SPDX-License-Identifier: MIT */
/* What a JFR file says about its recording, the machine and the JVMs. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "profile/attributes.h"
#include "profile/jfr.h"
#include "writers/jfr/stream.h"

uint64_t jfr_ticks_long(const struct writer_stream *j, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * j->ticks_per_second / NS_PER_SEC);
}

uint64_t jfr_ticks(const struct writer_stream *j, uint64_t ns)
{
	return j->start_ticks + jfr_ticks_long(j, ns);
}

#define COMMANDS_AMONG 65536 /* notes that are searched for a JVM's command */

void jfr_begin_event(struct writer_stream *j, enum jfr_type type, uint64_t ns)
{
	buf_clear(&j->body);
	jfr_put_numbers(&j->body, j->pools.type_base + type, jfr_ticks(j, ns));
}

uint64_t jfr_ns_of(const struct writer_stream *j, const struct profile_sample *sample)
{
	return sample->time_ns > j->profile->start_ns ? sample->time_ns - j->profile->start_ns : 0;
}

void jfr_begin_lasting(struct writer_stream *j, enum jfr_type type, const struct profile_sample *sample,
		       uint64_t length_ns)
{
	uint64_t end_ns = jfr_ns_of(j, sample);

	jfr_begin_event(j, type, end_ns > length_ns ? end_ns - length_ns : 0);
	jfr_put_numbers(&j->body, jfr_ticks_long(j, length_ns), jfr_thread(&j->pools, sample->thread));
}

void jfr_end_event(struct writer_stream *j)
{
	jfr_put_event(&j->events, &j->body);
}

static const char *text_of(const struct writer_stream *j, uint32_t text)
{
	return text ? profile_text(j->profile, text) : NULL;
}

static void put_recording(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	const char *version = text_of(j, profile->host.version);
	BUF(name);

	buf_printf(&name, "duet %s", version ? version : "");
	jfr_begin_event(j, JFR_E_ACTIVE_RECORDING, 0);
	jfr_put_number(&j->body, 1);
	jfr_put_text(&j->body, name.data);
	jfr_put_text(&j->body, NULL);
	jfr_put_numbers(&j->body, 0 /* largest age: none */, 0 /* largest size: none */,
			profile->start_realtime_ns / NS_PER_MS, (profile->end_ns - profile->start_ns) / NS_PER_MS);
	jfr_end_event(j);
}

static void put_setting(struct writer_stream *j, enum jfr_type type, const char *name, const char *value)
{
	jfr_begin_event(j, JFR_E_ACTIVE_SETTING, 0);
	jfr_put_number(&j->body, j->pools.type_base + type);
	jfr_put_text(&j->body, name);
	jfr_put_text(&j->body, value);
	jfr_end_event(j);
}

static void put_number_setting(struct writer_stream *j, enum jfr_type type, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put_setting(j, type, name, text);
}

/*
 * async-profiler's converter needs "interval" before the first sample, and "wall" before the first WallClockSample. The
 * name of an event is the last of its settings, so that the reader has the others by then.
 */
static void put_event_settings(struct writer_stream *j, size_t index, enum jfr_type type)
{
	const struct profile_event *event = &j->profile->events.items[index];
	const char *interval = jfr_interval_name(j->forms[index]);
	bool has_own_name = strcmp(interval, JFR_SETTING_INTERVAL) != 0 && strcmp(interval, JFR_SETTING_PERIOD) != 0;

	put_setting(j, type, "enabled", "true");
	put_setting(j, type, "stackTrace", "true");
	put_setting(j, type, JFR_SETTING_UNIT, profile_units[event->unit]);
	put_number_setting(j, type, interval, event->interval);
	if (has_own_name && j->forms[index] != WALL)
		put_number_setting(j, type, JFR_SETTING_PERIOD, event->interval);
	put_setting(j, type, JFR_SETTING_NAME, profile_text(j->profile, event->name));
}

static void put_list_setting(struct writer_stream *j, const char *name, const struct opt_strings *list)
{
	for (size_t i = 0; i < list->len; i++)
		put_setting(j, JFR_E_ACTIVE_RECORDING, name, list->items[i]);
}

/* Of async-profiler's settings, most are of the recording. */
static enum jfr_type type_of_setting(const char *name)
{
	if (text_is_word(name, "alluser nobatch"))
		return JFR_E_EXECUTION_SAMPLE;
	return !strcmp(name, "live") ? JFR_E_ALLOCATION_IN_NEW_TLAB : JFR_E_ACTIVE_RECORDING;
}

/* "name=value" lines; without a value, the setting is null. */
static void put_more_settings(struct writer_stream *j, const char *lines)
{
	BUF(line);

	for (; lines && *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
		char *value;

		buf_clear(&line);
		buf_add(&line, lines, strcspn(lines, "\n"));
		value = strchr(line.data, '=');
		if (!value)
			continue;
		*value++ = '\0';
		put_setting(j, type_of_setting(line.data), line.data, *value ? value : NULL);
	}
}

/* Those of a recording that no words of async-profiler have begun. */
static void put_own_settings(struct writer_stream *j)
{
	const struct profile *profile = j->profile;

	if (profile->events.len)
		put_setting(j, JFR_E_ACTIVE_RECORDING, JFR_SETTING_EVENT, profile_event_name(profile, 0));
	if (j->options.max_depth)
		put_number_setting(j, JFR_E_ACTIVE_RECORDING, "jstackdepth", j->options.max_depth);
	if (j->is_growing) {
		put_number_setting(j, JFR_E_ACTIVE_RECORDING, "chunksize", j->options.chunk_bytes);
		put_number_setting(j, JFR_E_ACTIVE_RECORDING, "chunktime", j->options.chunk_ns / NS_PER_SEC);
	}
}

static void put_recording_settings(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	const char *version = text_of(j, profile->host.version);

	if (profile->processes != PROFILE_IF_SEVERAL)
		put_setting(j, JFR_E_ACTIVE_RECORDING, JFR_SETTING_PROCESSES,
			    profile->processes == PROFILE_ALWAYS ? "always" : "never");
	if (version)
		put_setting(j, JFR_E_ACTIVE_RECORDING, "version", version);
	put_setting(j, JFR_E_ACTIVE_RECORDING, "clock", j->ticks_per_second == NS_PER_SEC ? "monotonic" : "tsc");
	put_number_setting(j, JFR_E_ACTIVE_RECORDING, "jfropts", j->options.jfr.without);
	put_list_setting(j, "include", &j->options.include);
	put_list_setting(j, "exclude", &j->options.exclude);
	if (j->options.jfr.settings)
		put_more_settings(j, j->options.jfr.settings);
	else
		put_own_settings(j);
}

static void put_limits(struct writer_stream *j)
{
	static const enum jfr_type types[JFR_RATES] = {
		[JFR_RATE_CPU] = JFR_E_EXECUTION_SAMPLE, [JFR_RATE_ALLOC] = JFR_E_ALLOCATION_IN_NEW_TLAB,
		[JFR_RATE_LOCK] = JFR_E_MONITOR_ENTER,	 [JFR_RATE_WALL] = JFR_E_WALL_CLOCK_SAMPLE,
		[JFR_RATE_NATIVEMEM] = JFR_E_MALLOC,	 [JFR_RATE_NATIVELOCK] = JFR_E_NATIVE_LOCK,
		[JFR_RATE_TRACE] = JFR_E_METHOD_TRACE,	 [JFR_RATE_SPAN] = JFR_E_SPAN,
	};

	for (enum jfr_rate rate = 0; rate < JFR_RATES; rate++)
		if (j->options.jfr.rate_limits[rate])
			put_number_setting(j, types[rate], "ratelimit", j->options.jfr.rate_limits[rate]);
}

/* async-profiler says of these types whether they are recorded. */
static void put_absent(struct writer_stream *j)
{
	static const struct {
		enum form form;
		enum jfr_type type;
	} known[] = {
		{EXECUTION, JFR_E_EXECUTION_SAMPLE},
		{IN_TLAB, JFR_E_ALLOCATION_IN_NEW_TLAB},
		{IN_TLAB, JFR_E_ALLOCATION_OUTSIDE_TLAB},
		{LOCK, JFR_E_MONITOR_ENTER},
		{LOCK, JFR_E_THREAD_PARK},
		{TRACE, JFR_E_METHOD_TRACE},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		bool is_there = known[i].type == JFR_E_THREAD_PARK && j->waits_park && jfr_has_form(j, WAIT);
		bool is_wall = known[i].form == EXECUTION && j->options.jfr.settings && jfr_has_form(j, WALL);

		if (is_there || jfr_has_form(j, known[i].form))
			continue;
		/* for async-profiler, samples of the wall clock are such, too */
		put_setting(j, known[i].type, "enabled", is_wall ? "true" : "false");
	}
}

static void put_settings(struct writer_stream *j)
{
	uint64_t usages_ns = j->profile->host.usages_ns;

	put_recording_settings(j);
	put_limits(j);
	put_absent(j);
	put_setting(j, JFR_E_PROCESS_SAMPLE, "enabled", usages_ns ? "true" : "false");
	if (usages_ns)
		put_number_setting(j, JFR_E_PROCESS_SAMPLE, JFR_SETTING_USAGES, usages_ns / NS_PER_SEC);
	for (size_t i = 0; i < j->profile->events.len; i++) {
		put_event_settings(j, i, jfr_type_of(j, i));
		if (j->forms[i] == LOCK || (j->forms[i] == WAIT && j->waits_park))
			put_event_settings(j, i, JFR_E_THREAD_PARK);
		if (j->forms[i] == LIVE && !j->pools.is_plain)
			put_setting(j, JFR_E_OLD_OBJECT_SAMPLE, "enabled", "true");
	}
}

static void put_host(struct writer_stream *j)
{
	const struct profile_host *host = &j->profile->host;
	const char *const parts[] = {text_of(j, host->os_name), text_of(j, host->os_release),
				     text_of(j, host->kernel_release), text_of(j, host->kernel_version),
				     text_of(j, host->machine)};
	BUF(system);

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i])
			buf_printf(&system, "%s%s", system.len ? " " : "", parts[i]);
	if (system.len) {
		jfr_begin_event(j, JFR_E_OS_INFORMATION, 0);
		jfr_put_text(&j->body, system.data);
		jfr_end_event(j);
	}
	if (host->processors) {
		jfr_begin_event(j, JFR_E_CPU_INFORMATION, 0);
		jfr_put_text(&j->body, text_of(j, host->cpu_model));
		jfr_put_text(&j->body, text_of(j, host->cpu_flags));
		jfr_put_numbers(&j->body, 0 /* sockets and cores: not known */, 0, host->processors);
		jfr_end_event(j);
	}
	if (host->memory_bytes) {
		jfr_add_event(j, JFR_E_PHYSICAL_MEMORY, 0, host->memory_bytes,
			      (uint64_t)((double)host->memory_bytes * host->memory_percent / 100));
	}
}

/* Since 1970; 0 = not known. */
static uint64_t start_of_process_ms(const struct profile_host *host, const struct profile_owner *owner)
{
	uint64_t boot_ms = (host->spawned_realtime_ns - host->spawned_boot_ns) / NS_PER_MS;

	return owner->start_ticks && host->spawned_boot_ns ? boot_ms + owner->start_ticks * 10 : 0;
}

/* The note about how this JVM was started, or NULL. It is one of the first. */
static const struct profile_note *command_of(const struct profile *profile, uint32_t pid)
{
	for (size_t i = 0; i < profile->notes.len && i < COMMANDS_AMONG; i++)
		if (profile->notes.items[i].kind == PROFILE_NOTE_COMMAND && profile->notes.items[i].pid == pid)
			return &profile->notes.items[i];
	return NULL;
}

/* "OpenJDK 64-Bit Server VM 17.0.15+6" */
static void put_jvm(struct writer_stream *j, const struct profile_owner *owner)
{
	const char *runtime = profile_text(j->profile, owner->runtime), *space = strrchr(runtime, ' ');
	const struct profile_note *command = command_of(j->profile, owner->pid);
	BUF(name);

	buf_add(&name, runtime, space ? (size_t)(space - runtime) : strlen(runtime));
	jfr_begin_event(j, JFR_E_JVM_INFORMATION, 0);
	jfr_put_text(&j->body, name.data);
	jfr_put_text(&j->body, space ? space + 1 : NULL);
	jfr_put_text(&j->body, text_of(j, command ? command->texts[0] : owner->vm_flags));
	jfr_put_text(&j->body, NULL);
	jfr_put_text(&j->body, text_of(j, command ? command->texts[1] : owner->application));
	jfr_put_numbers(&j->body, start_of_process_ms(&j->profile->host, owner), owner->pid);
	jfr_end_event(j);
	if (!j->pools.is_plain)
		jfr_views_flags(j, owner);
}

/* What a process publishes of itself: of several rows, the first that has it. */
static void put_published(struct writer_stream *j, size_t row)
{
	const struct profile_owner *owners = j->profile->owners.items, *owner = &owners[row];
	const char *at = profile_text(j->profile, owner->attributes);
	struct attribute published;
	BUF(key);
	BUF(value);

	for (size_t i = 1; i < row; i++)
		if (owners[i].attributes == owner->attributes && owners[i].pid == owner->pid)
			return;
	for (int i = 0; i < ATTRIBUTES_MAX && attributes_next(&at, &published); i++) {
		buf_clear(&key);
		buf_clear(&value);
		buf_add(&key, published.key, published.key_len);
		buf_add(&value, published.value, published.value_len);
		jfr_begin_event(j, JFR_E_RESOURCE, 0);
		jfr_put_number(&j->body, owner->pid);
		jfr_put_text(&j->body, key.data);
		jfr_put_text(&j->body, value.data);
		jfr_end_event(j);
	}
}

/* A process that was moved to another cgroup has a row for each. */
void jfr_put_jvms(struct writer_stream *j)
{
	const struct profile_owner *owners = j->profile->owners.items;

	for (size_t i = j->owners; i < j->profile->owners.len; i++) {
		bool is_known = !owners[i].runtime || j->options.jfr.without & WRITER_WITHOUT_SYSTEM;

		for (size_t other = 1; !is_known && other < i; other++)
			is_known = owners[other].runtime && owners[other].pid == owners[i].pid &&
				   owners[other].start_ticks == owners[i].start_ticks;
		if (!is_known)
			put_jvm(j, &owners[i]);
		if (owners[i].attributes && !j->pools.is_plain)
			put_published(j, i);
	}
	j->owners = j->profile->owners.len;
}

void jfr_put_beginning(struct writer_stream *j)
{
	put_recording(j);
	put_settings(j);
	if (!(j->options.jfr.without & WRITER_WITHOUT_SYSTEM))
		put_host(j);
}

static void put_note(struct writer_stream *j, const struct profile_note *note)
{
	const uint64_t *numbers = note->numbers;
	uint64_t ns = note->time_ns - j->profile->start_ns;

	switch ((enum profile_note_kind)note->kind) {
	case PROFILE_NOTE_PROPERTY:
		jfr_begin_event(j, JFR_E_SYSTEM_PROPERTY, 0);
		jfr_put_text(&j->body, profile_text(j->profile, note->texts[0]));
		jfr_put_text(&j->body, profile_text(j->profile, note->texts[1]));
		jfr_end_event(j);
		break;
	case PROFILE_NOTE_LIBRARY:
		jfr_begin_event(j, JFR_E_NATIVE_LIBRARY, ns);
		jfr_put_text(&j->body, profile_text(j->profile, note->texts[0]));
		jfr_put_numbers(&j->body, numbers[0], numbers[1]);
		jfr_end_event(j);
		break;
	case PROFILE_NOTE_LOAD:
		jfr_begin_event(j, JFR_E_CPU_LOAD, ns);
		for (size_t i = 0; i < 3; i++)
			jfr_put_float(&j->body,
				      numbers[i] < numbers[3] ? (float)((double)numbers[i] / (double)numbers[3]) : 1);
		jfr_end_event(j);
		break;
	case PROFILE_NOTE_HEAP: /* the addresses of the heap are not known: its space begins at 0 */
		jfr_add_event(j, JFR_E_HEAP_SUMMARY, ns, numbers[0], JFR_AFTER_GC, 0, numbers[2], numbers[2],
			      numbers[3], numbers[3], numbers[1]);
		break;
	case PROFILE_NOTE_THREADS:
		if (j->views.is_needed)
			jfr_add_event(j, JFR_E_THREAD_STATISTICS, ns, numbers[0], numbers[1], numbers[2], numbers[3]);
		break;
	default: /* how the JVM was started: put_jvm() */
		break;
	}
}

void jfr_put_notes(struct writer_stream *j, uint64_t until_ns)
{
	static const unsigned int without[PROFILE_NOTE_KINDS] = {
		[PROFILE_NOTE_PROPERTY] = WRITER_WITHOUT_PROPERTIES,
		[PROFILE_NOTE_LIBRARY] = WRITER_WITHOUT_LIBRARIES,
		[PROFILE_NOTE_LOAD] = WRITER_WITHOUT_LOAD,
		[PROFILE_NOTE_HEAP] = WRITER_WITHOUT_HEAP,
	};
	const struct profile *profile = j->profile;

	for (; j->notes < profile->notes.len && profile->notes.items[j->notes].time_ns <= until_ns; j->notes++) {
		const struct profile_note *note = &profile->notes.items[j->notes];

		j->has_load |= note->kind == PROFILE_NOTE_LOAD;
		if (note->kind == PROFILE_NOTE_HEAP) {
			j->heap_bytes = note->numbers[1];
			j->views.collections = note->numbers[0];
		}
		if (!(j->options.jfr.without & without[note->kind]) && note->time_ns >= profile->start_ns)
			put_note(j, note);
	}
}

#define MILLION 1e6f

static float seconds(uint64_t ns)
{
	return (float)((double)ns / NS_PER_SEC);
}

static void put_usage(struct writer_stream *j, const struct profile_usage *usage)
{
	const uint64_t numbers[] = {usage->size_bytes,	 usage->resident_bytes, usage->anonymous_bytes,
				    usage->file_bytes,	 usage->shared_bytes,	usage->minor_faults,
				    usage->major_faults, usage->read_bytes,	usage->written_bytes};

	jfr_begin_event(j, JFR_E_PROCESS_SAMPLE, usage->time_ns - j->profile->start_ns);
	jfr_put_numbers(&j->body, usage->pid, usage->parent);
	jfr_put_text(&j->body, text_of(j, usage->name));
	jfr_put_text(&j->body, text_of(j, usage->command));
	jfr_put_number(&j->body, usage->uid);
	buf_add_char(&j->body, (char)usage->state);
	jfr_put_number(&j->body, usage->started_ms);
	jfr_put_float(&j->body, seconds(usage->user_ns));
	jfr_put_float(&j->body, seconds(usage->system_ns));
	jfr_put_float(&j->body, (float)usage->load_ppm / MILLION);
	jfr_put_number(&j->body, usage->threads);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		jfr_put_number(&j->body, numbers[i]);
	jfr_end_event(j);
}

void jfr_put_usages(struct writer_stream *j, uint64_t until_ns)
{
	const struct profile *profile = j->profile;

	for (; j->usages < profile->usages.len && profile->usages.items[j->usages].time_ns <= until_ns; j->usages++) {
		const struct profile_usage *usage = &profile->usages.items[j->usages];

		if (usage->time_ns < profile->start_ns)
			continue;
		put_usage(j, usage);
		jfr_views_process(j, usage);
	}
}

/*
 * Writes one CPULoad for the whole recording, if no notes of each second were taken. The load of the JVMs is that of
 * their samples, the load of the machine is the host's.
 */
static void put_load(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	double all_ns = (double)(profile->end_ns - profile->start_ns) * profile->host.processors;

	if (!(all_ns > 0) || !(j->user_ns + j->system_ns) || j->has_load ||
	    j->options.jfr.without & WRITER_WITHOUT_LOAD)
		return;
	jfr_begin_event(j, JFR_E_CPU_LOAD, profile->end_ns - profile->start_ns);
	jfr_put_float(&j->body, (float)((double)j->user_ns / all_ns));
	jfr_put_float(&j->body, (float)((double)j->system_ns / all_ns));
	jfr_put_float(&j->body, (float)(profile->host.cpu_percent / 100));
	jfr_end_event(j);
}

/* As data that were lost for the JDK's tools, and as a warning for async-profiler's. */
static void put_loss(struct writer_stream *j, uint64_t count, const char *text)
{
	BUF(message);

	if (!count)
		return;
	j->lost += count;
	jfr_begin_event(j, JFR_E_DATA_LOSS, 0);
	jfr_put_numbers(&j->body, count, j->lost);
	jfr_put_text(&j->body, text);
	jfr_end_event(j);
	buf_printf(&message, "%llu %s", (unsigned long long)count, text);
	jfr_begin_event(j, JFR_E_LOG, 0);
	jfr_put_number(&j->body, JFR_LOG_WARN);
	jfr_put_text(&j->body, message.data);
	jfr_end_event(j);
}

void jfr_put_losses(struct writer_stream *j)
{
	const struct profile *profile = j->profile;

	for (size_t i = 0; i < profile->losses.len; i++) {
		const struct profile_loss *loss = &profile->losses.items[i];
		uint64_t known = 0;

		(void)map_get(&j->losses, loss->text, &known);
		if (loss->count <= known)
			continue;
		put_loss(j, loss->count - known, profile_text(profile, loss->text));
		if (j->is_growing && map_put(&j->losses, loss->text, loss->count) < 0)
			j->err = -ENOMEM;
	}
}

/* Facts of the beginning may be there again at the end. */
void jfr_put_facts(struct writer_stream *j)
{
	const struct profile *profile = j->profile;

	for (size_t i = 0; i < profile->facts.len; i++) {
		const struct profile_fact *fact = &profile->facts.items[i];
		uint64_t key = (uint64_t)fact->key << 32 | fact->value, known;

		if (j->is_growing && (map_get(&j->facts, key, &known) || map_put(&j->facts, key, 1) < 0))
			continue;
		jfr_begin_event(j, JFR_E_FACT, 0);
		jfr_put_text(&j->body, profile_text(profile, fact->key));
		jfr_put_text(&j->body, profile_text(profile, fact->value));
		jfr_end_event(j);
	}
}

void jfr_put_report(struct writer_stream *j)
{
	jfr_put_notes(j, UINT64_MAX);
	jfr_put_usages(j, UINT64_MAX);
	put_load(j);
	jfr_views_end(j);
	jfr_put_facts(j);
	jfr_put_losses(j);
	put_loss(j, j->over_limit, "events above the limits of --ratelimit");
}
