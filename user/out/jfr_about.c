/* SPDX-License-Identifier: MIT */
/* What a JFR file says about its recording, the machine and the JVMs. */
#include <string.h>

#include "base/clock.h"
#include "out/jfr_bytes.h"
#include "out/jfr_stream.h"
#include "profile/jfr.h"

void jfr_begin_event(struct writer_stream *j, enum jfr_type type, uint64_t ns)
{
	buf_clear(&j->body);
	jfr_put_number(&j->body, type);
	jfr_put_number(&j->body, JFR_START_TICKS + ns);
}

void jfr_end_event(struct writer_stream *j)
{
	jfr_put_event(&j->events, &j->body);
}

static const char *text_of(const struct writer_stream *j, uint32_t text)
{
	return text ? intern_text(&j->profile->strings, text) : NULL;
}

static void put_recording(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	const char *version = text_of(j, profile->host.version);
	struct buf name;

	buf_init(&name);
	buf_printf(&name, "duet %s", version ? version : "");
	jfr_begin_event(j, JFR_E_ACTIVE_RECORDING, 0);
	jfr_put_number(&j->body, 1);
	jfr_put_text(&j->body, name.data);
	jfr_put_text(&j->body, NULL);
	jfr_put_number(&j->body, 0); /* largest age: none */
	jfr_put_number(&j->body, 0); /* largest size: none */
	jfr_put_number(&j->body, profile->start_realtime_ns / NS_PER_MS);
	jfr_put_number(&j->body, (profile->end_ns - profile->start_ns) / NS_PER_MS);
	jfr_end_event(j);
	buf_release(&name);
}

static void put_setting(struct writer_stream *j, enum jfr_type type, const char *name, const char *value)
{
	jfr_begin_event(j, JFR_E_ACTIVE_SETTING, 0);
	jfr_put_number(&j->body, type);
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
	static const char *const units[PROFILE_UNIT_MAX] = {"ns", "count", "bytes"};
	const struct profile_event *event = &j->profile->events.items[index];

	put_setting(j, type, "enabled", "true");
	put_setting(j, type, "stackTrace", "true");
	put_setting(j, type, JFR_SETTING_UNIT, units[event->unit]);
	put_number_setting(j, type, j->forms[index] == WALL ? "wall" : JFR_SETTING_INTERVAL, event->interval);
	put_setting(j, type, JFR_SETTING_EVENT, intern_text(&j->profile->strings, event->name));
}

static void put_list_setting(struct writer_stream *j, const char *name, const struct opt_strings *list)
{
	for (size_t i = 0; i < list->len; i++)
		put_setting(j, JFR_E_ACTIVE_RECORDING, name, list->items[i]);
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
	if (j->options.max_depth)
		put_number_setting(j, JFR_E_ACTIVE_RECORDING, "jstackdepth", j->options.max_depth);
	if (j->is_growing) {
		put_number_setting(j, JFR_E_ACTIVE_RECORDING, "chunksize", j->options.chunk_bytes);
		put_number_setting(j, JFR_E_ACTIVE_RECORDING, "chunktime", j->options.chunk_ns / NS_PER_SEC);
	}
	put_list_setting(j, "include", &j->options.include);
	put_list_setting(j, "exclude", &j->options.exclude);
}

static void put_settings(struct writer_stream *j)
{
	put_recording_settings(j);
	for (size_t i = 0; i < j->profile->events.len; i++) {
		put_event_settings(j, i, jfr_type_of(j, i));
		if (j->forms[i] == LOCK || (j->forms[i] == WAIT && j->waits_park))
			put_event_settings(j, i, JFR_E_THREAD_PARK);
		if (j->forms[i] == LIVE)
			put_setting(j, JFR_E_OLD_OBJECT_SAMPLE, "enabled", "true");
	}
}

static void put_host(struct writer_stream *j)
{
	const struct profile_host *host = &j->profile->host;
	const char *const parts[] = {text_of(j, host->os_name), text_of(j, host->os_release),
				     text_of(j, host->kernel_release), text_of(j, host->kernel_version),
				     text_of(j, host->machine)};
	struct buf system;

	buf_init(&system);
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
		jfr_put_number(&j->body, 0); /* sockets and cores: not known */
		jfr_put_number(&j->body, 0);
		jfr_put_number(&j->body, host->processors);
		jfr_end_event(j);
	}
	buf_release(&system);
}

/* Since 1970; 0 = not known. */
static uint64_t start_of_process_ms(const struct profile_host *host, const struct profile_owner *owner)
{
	uint64_t boot_ms = (host->spawned_realtime_ns - host->spawned_boot_ns) / NS_PER_MS;

	return owner->start_ticks && host->spawned_boot_ns ? boot_ms + owner->start_ticks * 10 : 0;
}

/* "OpenJDK 64-Bit Server VM 17.0.15+6" */
static void put_jvm(struct writer_stream *j, const struct profile_owner *owner)
{
	const char *runtime = intern_text(&j->profile->strings, owner->runtime), *space = strrchr(runtime, ' ');
	struct buf name;

	buf_init(&name);
	buf_add(&name, runtime, space ? (size_t)(space - runtime) : strlen(runtime));
	jfr_begin_event(j, JFR_E_JVM_INFORMATION, 0);
	jfr_put_text(&j->body, name.data);
	jfr_put_text(&j->body, space ? space + 1 : NULL);
	jfr_put_text(&j->body, text_of(j, owner->vm_flags));
	jfr_put_text(&j->body, NULL);
	jfr_put_text(&j->body, text_of(j, owner->application));
	jfr_put_number(&j->body, start_of_process_ms(&j->profile->host, owner));
	jfr_put_number(&j->body, owner->pid);
	jfr_end_event(j);
	buf_release(&name);
}

/* A process that was moved to another cgroup has a row for each. */
void jfr_put_jvms(struct writer_stream *j)
{
	const struct profile_owner *owners = j->profile->owners.items;

	for (size_t i = j->owners; i < j->profile->owners.len; i++) {
		bool is_known = !owners[i].runtime;

		for (size_t other = 1; !is_known && other < i; other++)
			is_known = owners[other].runtime && owners[other].pid == owners[i].pid &&
				   owners[other].start_ticks == owners[i].start_ticks;
		if (!is_known)
			put_jvm(j, &owners[i]);
	}
	j->owners = j->profile->owners.len;
}

void jfr_put_beginning(struct writer_stream *j)
{
	put_recording(j);
	put_settings(j);
	put_host(j);
}

/* For the whole recording. The use of JVMs comes from samples, that of all processes from the host. */
static void put_load(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	double all_ns = (double)(profile->end_ns - profile->start_ns) * profile->host.processors;

	if (!(all_ns > 0) || !(j->user_ns + j->system_ns))
		return;
	jfr_begin_event(j, JFR_E_CPU_LOAD, profile->end_ns - profile->start_ns);
	jfr_put_float(&j->body, (float)((double)j->user_ns / all_ns));
	jfr_put_float(&j->body, (float)((double)j->system_ns / all_ns));
	jfr_put_float(&j->body, (float)(profile->host.cpu_percent / 100));
	jfr_end_event(j);
}

void jfr_put_report(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	uint64_t total = 0;

	put_load(j);
	for (size_t i = 0; i < profile->facts.len; i++) {
		jfr_begin_event(j, JFR_E_FACT, 0);
		jfr_put_text(&j->body, intern_text(&profile->strings, profile->facts.items[i].key));
		jfr_put_text(&j->body, intern_text(&profile->strings, profile->facts.items[i].value));
		jfr_end_event(j);
	}
	for (size_t i = 0; i < profile->losses.len; i++) {
		total += profile->losses.items[i].count;
		jfr_begin_event(j, JFR_E_DATA_LOSS, 0);
		jfr_put_number(&j->body, profile->losses.items[i].count);
		jfr_put_number(&j->body, total);
		jfr_put_text(&j->body, intern_text(&profile->strings, profile->losses.items[i].text));
		jfr_end_event(j);
	}
}
