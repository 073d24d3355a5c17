/* SPDX-License-Identifier: MIT */
/*
 * JFR files, version 2, with the names and fields of async-profiler's and the JDK's own events, so that their tools
 * read them. A file is a row of chunks. During a recording, a chunk grows part by part (jfr_file.h), until it is large
 * or old. A recording that has ended is written in chunks of one part.
 *
 * Readers count jdk.ExecutionSample and know no weight of it. A sample that stands for several is several events. Where
 * number and weight of samples do not follow from the events, duet.Weight before them has both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "out/jfr_bytes.h"
#include "out/jfr_file.h"
#include "out/jfr_metadata.h"
#include "out/jfr_pools.h"
#include "out/writers.h"
#include "profile/jfr.h"

#define PART_BYTES (16u << 20) /* of events or of stacks; then the part is written */
#define EVENTS_MAX (1u << 24) /* more samples than that are written with several to an event */
#define START_TICKS NS_PER_SEC /* a tick is a nanosecond */

/* How the samples of an event are written. */
enum form { EXECUTION, WALL, ALLOCATION, LOCK, WAIT, TRACE, OWN };

struct writer_stream {
	const struct profile *profile;
	struct writer_options options;
	struct jfr_file file;
	struct jfr_pools pools;
	bool is_growing; /* the recording has not ended */
	bool has_filters;
	struct map wanted; /* thread << 32 | node -> whether the filters choose it */
	enum form *forms; /* by event */
	bool *own;
	uint64_t per_event; /* samples for which an event stands */
	uint64_t samples; /* written so far */
	size_t owners; /* rows of the profile whose JVMs the file has */
	struct buf events, body;
	uint64_t begin_ns, end_ns; /* times of the chunk, since the start of the recording */
	int err;
};

/* ---- chunks ---- */

/* Writes the events since the last part. A chunk has one at least. */
static void put_part(struct writer_stream *j)
{
	struct jfr_times times = {
		.start_ns = j->profile->start_realtime_ns + j->begin_ns,
		.duration_ns = j->end_ns - j->begin_ns,
		.start_ticks = START_TICKS + j->begin_ns,
	};
	struct buf metadata, pools;
	uint64_t place;

	buf_init(&metadata);
	buf_init(&pools);
	if (!j->file.bytes && jfr_put_metadata(&metadata, j->profile, j->own, times.start_ticks) < 0)
		j->err = -ENOMEM;
	place = jfr_file_place(&j->file, metadata.len + j->events.len);
	jfr_put_pools(&j->pools, &pools, times.start_ticks, j->file.pools_at ? place - j->file.pools_at : 0);
	if (j->events.failed || j->pools.failed)
		j->err = -ENOMEM;
	if (!j->err)
		j->err = jfr_file_append(&j->file, &metadata, &j->events, &pools, &times);
	buf_clear(&j->events);
	buf_release(&metadata);
	buf_release(&pools);
}

static void end_chunk(struct writer_stream *j)
{
	put_part(j);
	jfr_file_end_chunk(&j->file);
	jfr_pools_end_chunk(&j->pools);
	j->begin_ns = j->end_ns;
}

/* The open chunk is too large or too old, or what is in memory is. */
static void put_what_is_full(struct writer_stream *j)
{
	size_t pending = j->events.len > j->pools.stacks.len ? j->events.len : j->pools.stacks.len;
	bool has_parts = j->is_growing && j->file.has_parts;

	if ((j->is_growing && (j->file.bytes + j->events.len + j->pools.stacks.len >= j->options.chunk_bytes ||
			       j->end_ns - j->begin_ns >= j->options.chunk_ns)) ||
	    (pending >= PART_BYTES && !has_parts))
		end_chunk(j);
	else if (pending >= PART_BYTES)
		put_part(j);
}

static void begin_event(struct writer_stream *j, enum jfr_type type, uint64_t ns)
{
	buf_clear(&j->body);
	jfr_put_number(&j->body, type);
	jfr_put_number(&j->body, START_TICKS + ns);
}

static void end_event(struct writer_stream *j)
{
	jfr_put_event(&j->events, &j->body);
}

/* ---- samples ---- */

/* Whether -I and -X choose the sample. */
static bool is_wanted(struct writer_stream *j, const struct profile_sample *sample)
{
	uint64_t key = (uint64_t)sample->thread << 32 | sample->node, known;
	int wanted;

	if (!j->has_filters)
		return true;
	if (map_get(&j->wanted, key, &known))
		return known;
	wanted = path_make(&j->pools.path, sample->thread, sample->node);
	if (wanted < 0 || map_put(&j->wanted, key, wanted > 0) < 0)
		j->err = -ENOMEM;
	return wanted > 0;
}

static uint64_t ns_of(const struct writer_stream *j, const struct profile_sample *sample)
{
	return sample->time_ns > j->profile->start_ns ? sample->time_ns - j->profile->start_ns : 0;
}

static const struct frame *leaf_of(const struct writer_stream *j, uint32_t node)
{
	return node ? &j->profile->frames.items[j->profile->nodes.items[node].frame] : NULL;
}

/* At least one event, so that each stack stays visible. */
static uint64_t events_of(const struct writer_stream *j, const struct profile_sample *sample)
{
	uint64_t events = sample->count / j->per_event;

	return events ? events : 1;
}

/* What follows from `events` events is not written. */
static void put_weight(struct writer_stream *j, const struct profile_sample *sample, uint64_t events, uint64_t weight)
{
	if (events == sample->count && weight == sample->weight)
		return;
	begin_event(j, JFR_E_WEIGHT, ns_of(j, sample));
	jfr_put_number(&j->body, events);
	jfr_put_number(&j->body, sample->count);
	jfr_put_number(&j->body, sample->weight);
	end_event(j);
}

static void put_executions(struct writer_stream *j, const struct profile_sample *sample)
{
	const struct profile_event *event = &j->profile->events.items[sample->event];
	uint64_t events = events_of(j, sample);
	uint64_t each = event->interval || event->unit != PROFILE_COUNT ? event->interval : 1;

	put_weight(j, sample, events, events * each);
	begin_event(j, JFR_E_EXECUTION_SAMPLE, ns_of(j, sample));
	jfr_put_number(&j->body, jfr_thread(&j->pools, sample->thread));
	jfr_put_number(&j->body, jfr_stack(&j->pools, sample->thread, sample->node));
	jfr_put_number(&j->body, JFR_STATE_DEFAULT);
	for (uint64_t i = 0; i < events; i++)
		end_event(j);
}

/* Returns the leaf of the stack that waited: what follows FRAME_WAKER is another's. */
static uint32_t sleeper_node(const struct profile *profile, uint32_t leaf)
{
	for (uint32_t node = leaf; node; node = profile->nodes.items[node].parent)
		if (profile->frames.items[profile->nodes.items[node].frame].kind == FRAME_WAKER)
			return profile->nodes.items[node].parent;
	return leaf;
}

/* A thread that waits for a CPU is runnable. So is one that has a CPU: its stack has no state. */
static enum jfr_thread_state state_of(const struct writer_stream *j, uint32_t node)
{
	const struct frame *leaf = leaf_of(j, sleeper_node(j->profile, node));
	const char *name = leaf ? intern_text(&j->profile->strings, leaf->name) : "";

	if (leaf && leaf->kind == FRAME_STATE && strcmp(name, "[runnable]"))
		return JFR_STATE_SLEEPING;
	return JFR_STATE_RUNNABLE;
}

static void put_wall(struct writer_stream *j, const struct profile_sample *sample)
{
	begin_event(j, JFR_E_WALL_CLOCK_SAMPLE, ns_of(j, sample));
	jfr_put_number(&j->body, jfr_thread(&j->pools, sample->thread));
	jfr_put_number(&j->body, jfr_stack(&j->pools, sample->thread, sample->node));
	jfr_put_number(&j->body, state_of(j, sample->node));
	jfr_put_number(&j->body, sample->count);
	jfr_put_number(&j->body, sample->weight);
	end_event(j);
}

/* A sample of an event with a class, which is a field and not a frame. */
struct classed {
	uint64_t at_ns, weight;
	uint32_t thread, stack, class_id, method;
};

static void put_allocation(struct writer_stream *j, const struct classed *event)
{
	begin_event(j, JFR_E_ALLOCATION_SAMPLE, event->at_ns);
	jfr_put_number(&j->body, event->thread);
	jfr_put_number(&j->body, event->stack);
	jfr_put_number(&j->body, event->class_id);
	jfr_put_number(&j->body, event->weight);
	end_event(j);
}

/* The time of the sample is the end of the wait. */
static void begin_wait(struct writer_stream *j, enum jfr_type type, const struct classed *event)
{
	begin_event(j, type, event->at_ns > event->weight ? event->at_ns - event->weight : 0);
	jfr_put_number(&j->body, event->weight);
	jfr_put_number(&j->body, event->thread);
	jfr_put_number(&j->body, event->stack);
	jfr_put_number(&j->body, event->class_id);
	jfr_put_number(&j->body, 0); /* the thread that had the lock, or that ended the wait */
}

static void put_lock(struct writer_stream *j, const struct classed *event)
{
	begin_wait(j, JFR_E_MONITOR_ENTER, event);
	jfr_put_number(&j->body, 0); /* address */
	end_event(j);
}

static void put_wait(struct writer_stream *j, const struct classed *event)
{
	begin_wait(j, JFR_E_MONITOR_WAIT, event);
	jfr_put_number(&j->body, 0); /* timeout */
	jfr_put_number(&j->body, 0); /* timed out */
	jfr_put_number(&j->body, 0); /* address */
	end_event(j);
}

/* The time of the sample is the end of the call. */
static void put_trace(struct writer_stream *j, const struct classed *event)
{
	begin_event(j, JFR_E_METHOD_TRACE, event->at_ns > event->weight ? event->at_ns - event->weight : 0);
	jfr_put_number(&j->body, event->weight);
	jfr_put_number(&j->body, event->thread);
	jfr_put_number(&j->body, event->stack);
	jfr_put_number(&j->body, event->method);
	end_event(j);
}

/* Of a call that stands for others, the weight is theirs too, but the event has its own duration. */
static uint64_t own_weight(const struct writer_stream *j, const struct profile_sample *sample)
{
	uint64_t interval = j->profile->events.items[sample->event].interval;

	return j->forms[sample->event] == TRACE && interval ? sample->weight / interval : sample->weight;
}

static void put_classed(struct writer_stream *j, const struct profile_sample *sample)
{
	static void (*const put[])(struct writer_stream *, const struct classed *) = {
		[ALLOCATION] = put_allocation,
		[LOCK] = put_lock,
		[WAIT] = put_wait,
		[TRACE] = put_trace,
	};
	uint64_t events = events_of(j, sample), rest = own_weight(j, sample);
	const struct frame *leaf = leaf_of(j, sample->node);
	struct classed event = {.at_ns = ns_of(j, sample), .thread = jfr_thread(&j->pools, sample->thread)};
	uint32_t node = sample->node;

	if (leaf && leaf->kind == FRAME_CLASS) {
		node = j->profile->nodes.items[node].parent;
		event.class_id = jfr_class_of(&j->pools, intern_text(&j->profile->strings, leaf->name));
	}
	event.stack = node || !event.class_id ? jfr_stack(&j->pools, sample->thread, node) : 0;
	event.method = jfr_leaf_method(&j->pools, node);
	put_weight(j, sample, events, rest);
	for (uint64_t i = 0; i < events; i++) {
		event.weight = rest / (events - i);
		put[j->forms[sample->event]](j, &event);
		rest -= event.weight;
	}
}

static void put_own(struct writer_stream *j, const struct profile_sample *sample)
{
	begin_event(j, (enum jfr_type)(JFR_E_OWN + sample->event), ns_of(j, sample));
	jfr_put_number(&j->body, jfr_thread(&j->pools, sample->thread));
	jfr_put_number(&j->body, jfr_stack(&j->pools, sample->thread, sample->node));
	jfr_put_number(&j->body, sample->count);
	jfr_put_number(&j->body, sample->weight);
	end_event(j);
}

static int put_sample(void *context, const struct profile_sample *sample)
{
	static void (*const put[])(struct writer_stream *, const struct profile_sample *) = {
		[EXECUTION] = put_executions,
		[WALL] = put_wall,
		[ALLOCATION] = put_classed,
		[LOCK] = put_classed,
		[WAIT] = put_classed,
		[TRACE] = put_classed,
		[OWN] = put_own,
	};
	struct writer_stream *j = context;

	if (!is_wanted(j, sample))
		return j->err;
	if (ns_of(j, sample) > j->end_ns)
		j->end_ns = ns_of(j, sample);
	put[j->forms[sample->event]](j, sample);
	put_what_is_full(j);
	return j->err;
}

/* ---- forms ---- */

static bool is_event(const struct profile *profile, size_t event, const char *name, enum profile_unit unit)
{
	const struct profile_event *row = &profile->events.items[event];

	return row->unit == unit && !strcmp(intern_text(&profile->strings, row->name), name);
}

/* The event's name has the method, too. */
static bool is_trace(const struct profile *profile, size_t event)
{
	const struct profile_event *row = &profile->events.items[event];

	return row->unit == PROFILE_NS && !strncmp(intern_text(&profile->strings, row->name), "trace", strlen("trace"));
}

static enum form form_of(const struct profile *profile, size_t event)
{
	if (is_event(profile, event, "alloc", PROFILE_BYTES))
		return ALLOCATION;
	if (is_event(profile, event, "lock", PROFILE_NS))
		return LOCK;
	if (is_event(profile, event, "wait", PROFILE_NS))
		return WAIT;
	if (is_trace(profile, event))
		return TRACE;
	if (is_event(profile, event, "offcpu", PROFILE_NS) || is_event(profile, event, "wakeup", PROFILE_NS) ||
	    is_event(profile, event, "wall", PROFILE_NS))
		return WALL;
	return OWN;
}

/* ExecutionSample is the event cpu, else the first that has no other type, as async-profiler does. */
static void choose_forms(struct writer_stream *j)
{
	size_t execution = SIZE_MAX;
	bool has_wall = false;

	for (size_t i = 0; i < j->profile->events.len; i++) {
		j->forms[i] = form_of(j->profile, i);
		if (j->forms[i] == WALL && has_wall)
			j->forms[i] = OWN;
		has_wall |= j->forms[i] == WALL;
		if (j->forms[i] == OWN && (execution == SIZE_MAX || is_event(j->profile, i, "cpu", PROFILE_NS)))
			execution = i;
	}
	if (execution != SIZE_MAX)
		j->forms[execution] = EXECUTION;
	for (size_t i = 0; i < j->profile->events.len; i++)
		j->own[i] = j->forms[i] == OWN;
}

static enum jfr_type type_of(const struct writer_stream *j, size_t event)
{
	static const enum jfr_type types[] = {
		[EXECUTION] = JFR_E_EXECUTION_SAMPLE,
		[WALL] = JFR_E_WALL_CLOCK_SAMPLE,
		[ALLOCATION] = JFR_E_ALLOCATION_SAMPLE,
		[LOCK] = JFR_E_MONITOR_ENTER,
		[WAIT] = JFR_E_MONITOR_WAIT,
		[TRACE] = JFR_E_METHOD_TRACE,
	};

	return j->forms[event] == OWN ? (enum jfr_type)(JFR_E_OWN + event) : types[j->forms[event]];
}

static int count_samples(void *context, const struct profile_sample *sample)
{
	*(uint64_t *)context += sample->count;
	return 0;
}

/* ---- settings and machine ---- */

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
	begin_event(j, JFR_E_ACTIVE_RECORDING, 0);
	jfr_put_number(&j->body, 1);
	jfr_put_text(&j->body, name.data);
	jfr_put_text(&j->body, NULL);
	jfr_put_number(&j->body, 0); /* largest age: none */
	jfr_put_number(&j->body, 0); /* largest size: none */
	jfr_put_number(&j->body, profile->start_realtime_ns / NS_PER_MS);
	jfr_put_number(&j->body, (profile->end_ns - profile->start_ns) / NS_PER_MS);
	end_event(j);
	buf_release(&name);
}

static void put_setting(struct writer_stream *j, enum jfr_type type, const char *name, const char *value)
{
	begin_event(j, JFR_E_ACTIVE_SETTING, 0);
	jfr_put_number(&j->body, type);
	jfr_put_text(&j->body, name);
	jfr_put_text(&j->body, value);
	end_event(j);
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
static void put_settings(struct writer_stream *j)
{
	static const char *const units[PROFILE_UNIT_MAX] = {"ns", "count", "bytes"};
	const struct profile *profile = j->profile;

	if (profile->processes != PROFILE_IF_SEVERAL)
		put_setting(j, JFR_E_ACTIVE_RECORDING, JFR_SETTING_PROCESSES,
			    profile->processes == PROFILE_ALWAYS ? "always" : "never");
	for (size_t i = 0; i < profile->events.len; i++) {
		const struct profile_event *event = &profile->events.items[i];
		enum jfr_type type = type_of(j, i);

		put_setting(j, type, JFR_SETTING_UNIT, units[event->unit]);
		put_number_setting(j, type, j->forms[i] == WALL ? "wall" : JFR_SETTING_INTERVAL, event->interval);
		put_setting(j, type, JFR_SETTING_EVENT, intern_text(&profile->strings, event->name));
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
		begin_event(j, JFR_E_OS_INFORMATION, 0);
		jfr_put_text(&j->body, system.data);
		end_event(j);
	}
	if (host->processors) {
		begin_event(j, JFR_E_CPU_INFORMATION, 0);
		jfr_put_text(&j->body, text_of(j, host->cpu_model));
		jfr_put_text(&j->body, text_of(j, host->cpu_flags));
		jfr_put_number(&j->body, 0); /* sockets and cores: not known */
		jfr_put_number(&j->body, 0);
		jfr_put_number(&j->body, host->processors);
		end_event(j);
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
	begin_event(j, JFR_E_JVM_INFORMATION, 0);
	jfr_put_text(&j->body, name.data);
	jfr_put_text(&j->body, space ? space + 1 : NULL);
	jfr_put_text(&j->body, text_of(j, owner->vm_flags));
	jfr_put_text(&j->body, NULL);
	jfr_put_text(&j->body, text_of(j, owner->application));
	jfr_put_number(&j->body, start_of_process_ms(&j->profile->host, owner));
	jfr_put_number(&j->body, owner->pid);
	end_event(j);
	buf_release(&name);
}

/* A process that was moved to another cgroup has a row for each. */
static void put_jvms(struct writer_stream *j)
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

static void put_report(struct writer_stream *j)
{
	const struct profile *profile = j->profile;
	uint64_t total = 0;

	for (size_t i = 0; i < profile->facts.len; i++) {
		begin_event(j, JFR_E_FACT, 0);
		jfr_put_text(&j->body, intern_text(&profile->strings, profile->facts.items[i].key));
		jfr_put_text(&j->body, intern_text(&profile->strings, profile->facts.items[i].value));
		end_event(j);
	}
	for (size_t i = 0; i < profile->losses.len; i++) {
		total += profile->losses.items[i].count;
		begin_event(j, JFR_E_DATA_LOSS, 0);
		jfr_put_number(&j->body, profile->losses.items[i].count);
		jfr_put_number(&j->body, total);
		jfr_put_text(&j->body, intern_text(&profile->strings, profile->losses.items[i].text));
		end_event(j);
	}
}

/* ---- the file ---- */

static int stream_init(struct writer_stream *j)
{
	buf_init(&j->events);
	buf_init(&j->body);
	j->options.reverse = false;
	if (j->options.chunk_bytes < WRITER_CHUNK_BYTES_MIN)
		j->options.chunk_bytes = WRITER_CHUNK_BYTES_MIN;
	if (j->options.chunk_ns < WRITER_CHUNK_NS_MIN)
		j->options.chunk_ns = WRITER_CHUNK_NS_MIN;
	j->has_filters = j->options.include.len || j->options.exclude.len;
	j->per_event = j->owners = 1;
	j->forms = calloc(j->profile->events.len + 1, sizeof(*j->forms));
	j->own = calloc(j->profile->events.len + 1, sizeof(*j->own));
	if (!j->forms || !j->own)
		return -ENOMEM;
	choose_forms(j);
	return jfr_pools_init(&j->pools, j->profile, &j->options);
}

static void stream_release(struct writer_stream *j)
{
	jfr_file_release(&j->file);
	jfr_pools_release(&j->pools);
	map_release(&j->wanted);
	free(j->forms);
	free(j->own);
	buf_release(&j->events);
	buf_release(&j->body);
}

static void put_beginning(struct writer_stream *j)
{
	put_recording(j);
	put_settings(j);
	put_host(j);
}

static int put_end(struct writer_stream *j)
{
	const struct profile *profile = j->profile;

	put_report(j);
	if (profile->end_ns - profile->start_ns > j->end_ns)
		j->end_ns = profile->end_ns - profile->start_ns;
	put_part(j);
	return j->err ? j->err : writer_finish(j->file.out);
}

static int jfr_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	struct writer_stream j = {.profile = profile, .options = *options};
	uint64_t samples = 0;
	int err = stream_init(&j);

	jfr_file_init(&j.file, out);
	if (!err)
		err = timeline_each(&profile->samples, count_samples, &samples);
	j.per_event += samples / EVENTS_MAX;
	if (!err) {
		put_beginning(&j);
		put_jvms(&j);
		err = timeline_each(&profile->samples, put_sample, &j);
	}
	if (!err)
		err = put_end(&j);
	stream_release(&j);
	return err;
}

/* ---- the file of a recording that has not ended ---- */

static void jfr_stream_close(struct writer_stream *stream)
{
	if (!stream)
		return;
	stream_release(stream);
	free(stream);
}

static struct writer_stream *jfr_stream_open(const struct profile *profile, const struct writer_options *options,
					     FILE *out)
{
	struct writer_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->profile = profile;
	stream->options = *options;
	stream->is_growing = true;
	jfr_file_init(&stream->file, out);
	if (stream_init(stream) < 0) {
		jfr_stream_close(stream);
		return NULL;
	}
	put_beginning(stream);
	return stream;
}

/* The rest of the time, in which nothing may have happened, belongs to the chunk. */
static void end_part(struct writer_stream *j)
{
	uint64_t now_ns = j->profile->end_ns - j->profile->start_ns;

	if (now_ns > j->end_ns)
		j->end_ns = now_ns;
	put_what_is_full(j);
	if (j->file.has_parts && (j->events.len || !j->file.bytes))
		put_part(j);
}

static int jfr_stream_append(struct writer_stream *stream, bool is_end)
{
	const struct timeline *samples = &stream->profile->samples;
	int err = jfr_pools_extend(&stream->pools);

	stream->per_event = 1 + stream->samples / EVENTS_MAX;
	put_jvms(stream);
	if (!err)
		err = timeline_rest(samples, stream->samples, put_sample, stream);
	stream->samples = samples->len;
	if (err)
		return err;
	if (is_end)
		return put_end(stream);
	end_part(stream);
	return stream->err ? stream->err : writer_finish(stream->file.out);
}

const struct writer writer_jfr = {
	.name = "jfr",
	.extensions = "jfr",
	.help = "Java Flight Recorder's format, for jfr, JDK Mission Control and async-profiler's converter",
	.has_all_events = true,
	.write = jfr_write,
	.stream_open = jfr_stream_open,
	.stream_append = jfr_stream_append,
	.stream_close = jfr_stream_close,
};
