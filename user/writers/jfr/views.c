/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "writers/jfr/stream.h"

#define NONE UINT32_MAX

static uint32_t event_named(const struct profile *profile, const char *name, enum profile_unit unit)
{
	for (uint32_t i = 0; i < profile->events.len; i++)
		if (jfr_is_event(profile, i, name, unit))
			return i;
	return NONE;
}

void jfr_views_init(struct writer_stream *j)
{
	const struct profile *profile = j->profile;

	j->views = (struct jfr_views){
		.cpu = event_named(profile, "cpu", PROFILE_NS),
		.alloc = event_named(profile, "alloc", PROFILE_BYTES),
		.gc = event_named(profile, "gc", PROFILE_NS),
		.safepoint = event_named(profile, "safepoint", PROFILE_NS),
		.compilation = event_named(profile, "compilation", PROFILE_COUNT),
		.class_load = event_named(profile, "class-load", PROFILE_COUNT),
		.is_needed = !j->options.jfr.jdk_file,
	};
}

void jfr_views_release(struct jfr_views *views)
{
	vec_release(&views->threads);
	map_release(&views->processes);
}

static struct jfr_thread_sums *sums_of(struct writer_stream *j, uint32_t thread)
{
	while (j->views.threads.len <= thread)
		if (vec_push(&j->views.threads, (struct jfr_thread_sums){0}) < 0) {
			j->err = -ENOMEM;
			return NULL;
		}
	return &j->views.threads.items[thread];
}

static void add_cpu(struct writer_stream *j, struct jfr_thread_sums *sums, const struct profile_sample *sample)
{
	const struct frame *leaf = profile_leaf(j->profile, sample->node);

	if (leaf && leaf->kind == FRAME_KERNEL) {
		j->system_ns += sample->weight;
		sums->system_ns += sample->weight;
	} else {
		j->user_ns += sample->weight;
		sums->user_ns += sample->weight;
	}
}

void jfr_views_sum(struct writer_stream *j, const struct profile_sample *sample)
{
	const struct profile_thread *thread = &j->profile->threads.items[sample->thread];
	struct jfr_thread_sums *sums;

	if (!j->profile->owners.items[thread->owner].runtime ||
	    (sample->event != j->views.cpu && sample->event != j->views.alloc))
		return;
	sums = sums_of(j, j->pools.threads.rows.items[sample->thread]);
	if (sums && sample->event == j->views.cpu)
		add_cpu(j, sums, sample);
	else if (sums)
		sums->allocated += sample->weight;
}

/* Parts of all CPUs, as the JDK writes them. */
static void put_thread_load(struct writer_stream *j, uint32_t thread, const struct jfr_thread_sums *sums)
{
	uint64_t length_ns = j->profile->end_ns - j->profile->start_ns;
	double all_ns = (double)length_ns * j->profile->host.processors;

	if (!(all_ns > 0) || !(sums->user_ns + sums->system_ns) || j->options.jfr.without & WRITER_WITHOUT_LOAD)
		return;
	jfr_begin_event(j, JFR_E_THREAD_CPU_LOAD, length_ns);
	jfr_put_number(&j->body, jfr_thread(&j->pools, thread));
	jfr_put_float(&j->body, (float)((double)sums->user_ns / all_ns));
	jfr_put_float(&j->body, (float)((double)sums->system_ns / all_ns));
	jfr_end_event(j);
}

void jfr_views_end(struct writer_stream *j)
{
	for (uint32_t i = 0; j->views.is_needed && i < j->views.threads.len; i++) {
		put_thread_load(j, i, &j->views.threads.items[i]);
		if (j->views.threads.items[i].allocated)
			jfr_add_event(j, JFR_E_THREAD_ALLOCATION, j->profile->end_ns - j->profile->start_ns,
				      j->views.threads.items[i].allocated, jfr_thread(&j->pools, i));
	}
}

/* Each pause is a collection of its own. Heap summaries continue their numbers. */
static void put_collection(struct writer_stream *j, const struct profile_sample *sample)
{
	j->views.collections++;
	jfr_begin_lasting(j, JFR_E_GARBAGE_COLLECTION, sample, sample->weight);
	jfr_put_number(&j->body, j->views.collections);
	jfr_put_text(&j->body, NULL); /* name and cause: not known */
	jfr_put_text(&j->body, NULL);
	jfr_put_numbers(&j->body, jfr_ticks_long(j, sample->weight), jfr_ticks_long(j, sample->weight));
	jfr_end_event(j);
	jfr_begin_lasting(j, JFR_E_GC_PAUSE, sample, sample->weight);
	jfr_put_number(&j->body, j->views.collections);
	jfr_put_text(&j->body, "GC Pause");
	jfr_end_event(j);
}

static void put_safepoint_part(struct writer_stream *j, enum jfr_type type, const struct profile_sample *sample,
			       uint64_t before_end_ns, uint64_t length_ns)
{
	struct profile_sample then = *sample;

	then.time_ns -= before_end_ns < jfr_ns_of(j, sample) ? before_end_ns : jfr_ns_of(j, sample);
	jfr_begin_lasting(j, type, &then, length_ns);
	jfr_put_number(&j->body, j->views.safepoints);
	if (type == JFR_E_SAFEPOINT_BEGIN) {
		jfr_put_numbers(&j->body, 0 /* threads, and those in critical sections: not known */, 0);
	}
	jfr_end_event(j);
}

/* A safepoint has two samples: how long the threads took to stop, and then how long they were stopped. */
static void put_safepoint(struct writer_stream *j, const struct profile_sample *sample)
{
	const struct frame *leaf = profile_leaf(j->profile, sample->node);

	if (leaf && !strcmp(profile_text(j->profile, leaf->name), "[time_to_safepoint]")) {
		j->views.stopping_ns = sample->weight;
		return;
	}
	j->views.safepoints++;
	put_safepoint_part(j, JFR_E_SAFEPOINT_BEGIN, sample, sample->weight, j->views.stopping_ns);
	put_safepoint_part(j, JFR_E_SAFEPOINT_STOPPING, sample, sample->weight, j->views.stopping_ns);
	put_safepoint_part(j, JFR_E_SAFEPOINT_END, sample, 0, 0);
	j->views.stopping_ns = 0;
}

static void put_compilation(struct writer_stream *j, const struct profile_sample *sample)
{
	jfr_begin_lasting(j, JFR_E_COMPILATION, sample, 0);
	(void)jfr_stack(&j->pools, sample->thread, sample->node);
	jfr_put_numbers(&j->body, jfr_leaf_method(&j->pools, sample->node), 0 /* level: not known */,
			1 /* it succeeded */);
	jfr_end_event(j);
}

static void put_class_load(struct writer_stream *j, const struct profile_sample *sample)
{
	const struct frame *leaf = profile_leaf(j->profile, sample->node);
	uint32_t stack;

	if (!leaf || leaf->kind != FRAME_CLASS)
		return;
	jfr_begin_lasting(j, JFR_E_CLASS_LOAD, sample, 0);
	stack = jfr_stack(&j->pools, sample->thread, j->profile->nodes.items[sample->node].parent);
	jfr_put_numbers(&j->body, stack, jfr_class_of(&j->pools, profile_text(j->profile, leaf->name)));
	jfr_end_event(j);
}

void jfr_views_put(struct writer_stream *j, const struct profile_sample *sample)
{
	if (!j->views.is_needed)
		return;
	if (sample->event == j->views.gc)
		put_collection(j, sample);
	else if (sample->event == j->views.safepoint)
		put_safepoint(j, sample);
	else if (sample->event == j->views.compilation)
		put_compilation(j, sample);
	else if (sample->event == j->views.class_load)
		put_class_load(j, sample);
}

void jfr_views_process(struct writer_stream *j, const struct profile_usage *usage)
{
	uint64_t key = hash_u64(usage->started_ms) ^ usage->pid, known;
	const char *command = profile_text(j->profile, usage->command ? usage->command : usage->name);
	char pid[16];

	if (!j->views.is_needed || map_get(&j->views.processes, key, &known))
		return;
	if (map_put(&j->views.processes, key, 1) < 0)
		j->err = -ENOMEM;
	snprintf(pid, sizeof(pid), "%u", usage->pid);
	jfr_begin_event(j, JFR_E_SYSTEM_PROCESS, usage->time_ns - j->profile->start_ns);
	jfr_put_text(&j->body, pid);
	jfr_put_text(&j->body, command);
	jfr_end_event(j);
}

/* `line` is "Name=value", and `len` its length. */
static void put_flag(struct writer_stream *j, const char *line, size_t len)
{
	const char *value = memchr(line, '=', len);
	BUF(name);
	BUF(text);
	bool is_switch, is_number;

	if (!value)
		return;
	buf_add(&name, line, (size_t)(value - line));
	buf_add(&text, value + 1, len - (size_t)(value + 1 - line));
	is_switch = !strcmp(text.data, "true") || !strcmp(text.data, "false");
	is_number = !text.data[strspn(text.data, "-0123456789")];
	jfr_begin_event(j, is_switch ? JFR_E_BOOLEAN_FLAG : is_number ? JFR_E_LONG_FLAG : JFR_E_STRING_FLAG, 0);
	jfr_put_text(&j->body, name.data);
	if (is_switch)
		jfr_put_number(&j->body, text.data[0] == 't');
	else if (is_number)
		jfr_put_number(&j->body, (uint64_t)strtoll(text.data, NULL, 10));
	else
		jfr_put_text(&j->body, text.data);
	jfr_put_number(&j->body, JFR_FLAG_OF_OPTION);
	jfr_end_event(j);
}

void jfr_views_flags(struct writer_stream *j, const struct profile_owner *owner)
{
	const char *line = owner->vm_flags ? profile_text(j->profile, owner->vm_flags) : "";

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n')
		put_flag(j, line, strcspn(line, "\n"));
}
