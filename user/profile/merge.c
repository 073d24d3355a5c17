/* SPDX-License-Identifier: MIT */
#include "profile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/intervals.h"
#include "profile/layout.h"

/* ---- memory that was taken and never freed, by the addresses of both ---- */

/* The latest event of an address. */
struct unfreed_use {
	uint64_t time_ns, sample; /* the sample's number in the timeline */
};

/* A zeroed struct with the two events set is valid and empty. */
struct unfreed {
	uint32_t taken, freed; /* events of the profile; `freed` is UINT32_MAX if nothing was freed */
	const struct profile *profile; /* not owned */
	struct map last; /* process and address -> index in `latest` */
	struct vec(struct unfreed_use) latest;
	uint64_t found; /* samples that were looked at */
	uint64_t asked; /* samples that unfreed_next() was called for */
	uint64_t unknown; /* samples of `taken` whose address is not known */
};

#define PID_FACTOR 0x9e3779b97f4a7c15ull /* 2^64 divided by the golden ratio: pids become far from each other */

/* Several processes have the same addresses. */
static uint64_t key_of(const struct unfreed *u, const struct profile_sample *sample)
{
	return sample->address ^ u->profile->threads.items[sample->thread].pid * PID_FACTOR;
}

/* Samples of several CPUs need not be in the order of time. */
static int look_at(void *context, const struct profile_sample *sample)
{
	struct unfreed *u = context;
	struct unfreed_use use = {.time_ns = sample->time_ns, .sample = u->found++};
	uint64_t index;

	u->unknown += sample->event == u->taken && !sample->address;
	if (!sample->address || (sample->event != u->taken && sample->event != u->freed))
		return 0;
	if (map_get(&u->last, key_of(u, sample), &index)) {
		if (use.time_ns >= u->latest.items[index].time_ns)
			u->latest.items[index] = use;
		return 0;
	}
	index = u->latest.len;
	return vec_push(&u->latest, use) < 0 ? -ENOMEM : map_put(&u->last, key_of(u, sample), index);
}

/*
 * Called once for each sample, in the order of timeline_each(). Returns true if the sample took memory that was not
 * freed, nor taken again at its address, until the end of the recording.
 */
static bool unfreed_next(struct unfreed *unfreed, const struct profile_sample *sample)
{
	uint64_t number = unfreed->asked++, index;

	return sample->event == unfreed->taken && sample->address &&
	       map_get(&unfreed->last, key_of(unfreed, sample), &index) &&
	       unfreed->latest.items[index].sample == number;
}

/* ---- copying the rows that samples use from one profile to another, each once ---- */

/* The caller sets the first three fields. The maps hold what was copied: index in `from` -> index in `to`. */
struct mover {
	const struct profile *from;
	struct profile *to;
	struct intern_move *strings; /* NULL: both profiles share their strings */
	uint32_t *nodes; /* by index in `from`; 0 = not copied yet. Else as the maps */
	struct map frames, threads, owners;
	struct vec(uint32_t) path;
};

/* This and the others return the index in `to` of a row of `from`, or UINT32_MAX (text: 0) when out of memory. */
static uint32_t mover_text(struct mover *m, uint32_t id)
{
	return intern_moved(m->strings, id);
}

/* Moves the texts of a row; the layout of files says which fields these are. */
static void move_texts(struct mover *m, enum layout_type type, void *row)
{
	for (const struct layout_field *field = layout_rows[type].fields; field->bytes; field++) {
		uint32_t *text = (uint32_t *)((char *)row + field->offset);

		if (field->is_text)
			*text = mover_text(m, *text);
	}
}

static uint32_t move_frame(struct mover *m, uint32_t index)
{
	struct frame frame = m->from->frames.items[index];
	uint64_t known;

	if (map_get(&m->frames, index, &known))
		return (uint32_t)known;
	move_texts(m, LAYOUT_FRAMES, &frame);
	known = profile_frame(m->to, &frame);
	(void)map_put(&m->frames, index, known); /* here and below: if out of memory, the row is copied again */
	return (uint32_t)known;
}

/* Callers that were moved before are not moved again: many stacks may share a deep one. */
static uint32_t mover_node(struct mover *m, uint32_t leaf)
{
	const struct stack_node *nodes = m->from->nodes.items;
	uint32_t moved, node;

	if (!m->nodes)
		m->nodes = calloc(m->from->nodes.len, sizeof(*m->nodes));
	if (!m->nodes)
		return UINT32_MAX;
	vec_clear(&m->path);
	for (node = leaf; node && !m->nodes[node]; node = nodes[node].parent)
		if (vec_push(&m->path, node) < 0 || move_frame(m, nodes[node].frame) == UINT32_MAX)
			return UINT32_MAX;
	moved = m->nodes[node];
	while (m->path.len && moved != UINT32_MAX) {
		node = m->path.items[--m->path.len];
		moved = profile_child(m->to, moved, move_frame(m, nodes[node].frame));
		m->nodes[node] = moved != UINT32_MAX ? moved : 0;
	}
	return moved;
}

static uint32_t move_owner(struct mover *m, uint32_t index)
{
	struct profile_owner owner = m->from->owners.items[index];
	uint64_t known;

	if (map_get(&m->owners, index, &known))
		return (uint32_t)known;
	move_texts(m, LAYOUT_OWNERS, &owner);
	known = profile_owner(m->to, &owner);
	(void)map_put(&m->owners, index, known);
	return (uint32_t)known;
}

static uint32_t mover_thread(struct mover *m, uint32_t index)
{
	const struct profile_thread *thread = &m->from->threads.items[index];
	struct profile_thread moved = *thread;
	uint64_t known, id;
	bool has_id = profile_java_id(m->from, index, &id);

	if (map_get(&m->threads, index, &known))
		return (uint32_t)known;
	moved.name = mover_text(m, thread->name);
	moved.process = mover_text(m, thread->process);
	moved.owner = move_owner(m, thread->owner);
	known = profile_thread_row(m->to, moved, has_id ? &id : NULL);
	(void)map_put(&m->threads, index, known);
	return (uint32_t)known;
}

static void mover_release(struct mover *m)
{
	free(m->nodes);
	map_release(&m->frames);
	map_release(&m->threads);
	map_release(&m->owners);
	vec_release(&m->path);
}

struct merge {
	struct mover mover;
	struct profile_part part;
	struct vec(uint32_t) events; /* index in `from` -> in `to`; UINT32_MAX: not selected */
	struct unfreed unfreed;
};

static int out_of_memory(struct buf *why)
{
	return buf_explain(why, -ENOMEM, "out of memory");
}

/* Weights of different units cannot be added. */
static int move_event(struct merge *merge, const struct profile_event *event, struct buf *why)
{
	struct profile *to = merge->mover.to;
	const char *name = profile_text(merge->mover.from, event->name);
	uint32_t index = profile_event(to, name, event->unit, event->interval);

	if (index == UINT32_MAX || vec_push(&merge->events, index) < 0)
		return out_of_memory(why);
	if (to->events.items[index].unit != event->unit)
		return buf_explain(why, -EINVAL, "its event %s has another unit", name);
	if (to->events.items[index].interval != event->interval)
		to->events.items[index].interval = 0;
	return 0;
}

static int move_events(struct merge *merge, struct buf *why)
{
	const struct profile *from = merge->mover.from;
	int err = 0;

	for (size_t i = 0; !err && i < from->events.len; i++) {
		bool is_also = merge->part.event != UINT32_MAX && merge->part.also == i;

		if (is_also || merge->part.event == UINT32_MAX || merge->part.event == i)
			err = move_event(merge, &from->events.items[is_also ? merge->part.event : i], why);
		else if (vec_push(&merge->events, UINT32_MAX) < 0)
			err = out_of_memory(why);
	}
	return err;
}

static bool is_within(const struct merge *merge, const struct profile_sample *sample)
{
	const struct profile_part *part = &merge->part;

	if (sample->time_ns < part->from_ns || sample->time_ns >= part->until_ns)
		return false;
	if (part->states && !(part->states >> thread_state_of(merge->mover.from, sample) & 1))
		return false;
	return !part->within || intervals_has(part->within, sample);
}

static int move_sample(void *context, const struct profile_sample *sample)
{
	struct merge *merge = context;
	struct profile_sample moved = *sample;

	if (merge->part.is_unfreed && !unfreed_next(&merge->unfreed, sample))
		return 0;
	moved.event = merge->events.items[sample->event];
	if (moved.event == UINT32_MAX || !is_within(merge, sample))
		return 0;
	moved.node = mover_node(&merge->mover, sample->node);
	if (merge->part.place && !merge->part.place(merge->part.context, merge->mover.to, sample, &moved.node))
		return 0;
	moved.thread = mover_thread(&merge->mover, sample->thread);
	moved.attributes = mover_text(&merge->mover, sample->attributes);
	return profile_add(merge->mover.to, &moved);
}

static int move_samples(struct merge *merge, struct buf *why)
{
	const struct timeline *samples = &merge->mover.from->samples;
	int err = move_events(merge, why);

	if (err)
		return err;
	merge->unfreed.taken = merge->part.event;
	merge->unfreed.freed = merge->part.freed;
	merge->unfreed.profile = merge->mover.from;
	if (merge->part.is_unfreed)
		err = timeline_each(samples, look_at, &merge->unfreed);
	if (!err)
		err = timeline_each(samples, move_sample, merge);
	if (err < 0)
		buf_printf(why, "%s", strerror(-err));
	return err;
}

static int add_loss(struct merge *merge, const struct profile_loss *loss)
{
	struct profile *to = merge->mover.to;
	uint32_t text = mover_text(&merge->mover, loss->text);

	for (size_t i = 0; i < to->losses.len; i++)
		if (to->losses.items[i].text == text) {
			to->losses.items[i].count += loss->count;
			return 0;
		}
	return vec_push(&to->losses, (struct profile_loss){.count = loss->count, .text = text});
}

static bool has_fact(const struct profile *profile, size_t count, const struct profile_fact *fact)
{
	for (size_t i = 0; i < count; i++)
		if (profile->facts.items[i].key == fact->key && profile->facts.items[i].value == fact->value)
			return true;
	return false;
}

static int move_losses(struct merge *merge)
{
	const struct profile *from = merge->mover.from;
	int err = 0;

	for (size_t i = 0; !err && i < from->losses.len; i++)
		err = add_loss(merge, &from->losses.items[i]);
	if (!err && merge->unfreed.unknown)
		profile_add_loss(merge->mover.to, merge->unfreed.unknown,
				 "allocations are left out, as their addresses are not known");
	return err;
}

/* `name` is that of profile_merge(); NULL: append no fact "source". */
static int move_facts(struct merge *merge, const char *name)
{
	const struct profile *from = merge->mover.from;
	struct profile *to = merge->mover.to;
	size_t before = to->facts.len;
	int err = 0;

	if (name)
		profile_add_fact(to, "source", "%s", name);
	for (size_t i = 0; !err && i < from->facts.len; i++) {
		struct profile_fact fact = from->facts.items[i];

		move_texts(&merge->mover, LAYOUT_FACTS, &fact);
		if (!has_fact(to, before, &fact))
			err = vec_push(&to->facts, fact);
	}
	return err;
}

/* What has no time of its own is kept whatever part of the recording is wanted. */
static bool is_of_part(const struct merge *merge, const struct profile_note *note)
{
	bool has_time = note->kind == PROFILE_NOTE_LOAD || note->kind == PROFILE_NOTE_HEAP ||
			note->kind == PROFILE_NOTE_THREADS;

	return !has_time || (note->time_ns >= merge->part.from_ns && note->time_ns < merge->part.until_ns);
}

static int move_notes(struct merge *merge)
{
	const struct profile *from = merge->mover.from;
	struct profile *to = merge->mover.to;
	int err = 0;

	for (size_t i = 0; !err && i < from->notes.len && to->notes.len < PROFILE_NOTES_MAX; i++) {
		struct profile_note note = from->notes.items[i];

		if (!is_of_part(merge, &note))
			continue;
		move_texts(&merge->mover, LAYOUT_NOTES, &note);
		err = vec_push(&to->notes, note);
	}
	return err;
}

static int move_usages(struct merge *merge)
{
	const struct profile *from = merge->mover.from;
	int err = 0;

	for (size_t i = 0; err != -ENOMEM && i < from->usages.len; i++) {
		struct profile_usage usage = from->usages.items[i];

		if (usage.time_ns < merge->part.from_ns || usage.time_ns >= merge->part.until_ns)
			continue;
		move_texts(&merge->mover, LAYOUT_USAGES, &usage);
		err = profile_add_usage(merge->mover.to, &usage);
	}
	return err == -ENOMEM ? err : 0;
}

static void copy_times(struct profile *to, const struct profile *from)
{
	to->start_ns = from->start_ns;
	to->end_ns = from->end_ns;
	to->start_realtime_ns = from->start_realtime_ns;
	to->processes = from->processes;
	to->is_private = from->is_private;
}

/* The row of a process in both recordings may stand for two processes. */
static void merge_times(struct profile *to, const struct profile *from)
{
	bool is_always = from->processes == PROFILE_ALWAYS || to->processes == PROFILE_ALWAYS;

	if (from->start_ns < to->start_ns) {
		to->start_ns = from->start_ns;
		to->start_realtime_ns = from->start_realtime_ns;
	}
	if (from->end_ns > to->end_ns)
		to->end_ns = from->end_ns;
	to->processes = is_always ? PROFILE_ALWAYS : PROFILE_IF_SEVERAL;
	to->is_private |= from->is_private;
	to->host.window_ns = 0;
}

static int move_all(struct merge *merge, const char *name, struct buf *why)
{
	struct profile *to = merge->mover.to;
	const struct profile *from = merge->mover.from;
	bool is_first = !to->end_ns && !to->samples.len && !to->facts.len;
	int err = move_samples(merge, why);

	if (err < 0)
		return err;
	if (!to->host.version && !to->host.name) {
		to->host = from->host;
		move_texts(&merge->mover, LAYOUT_HOST, &to->host);
	}
	if (is_first)
		copy_times(to, from);
	else
		merge_times(to, from);
	err = move_losses(merge);
	if (!err)
		err = move_facts(merge, name);
	if (!err)
		err = move_notes(merge);
	if (!err)
		err = move_usages(merge);
	return err ? out_of_memory(why) : 0;
}

static int merge_run(struct profile *to, const struct profile *from, const char *name, const struct profile_part *part,
		     struct buf *why)
{
	struct merge merge = {.part = *part};
	struct intern_move strings;
	int err;

	if (intern_move_init(&strings, &from->strings, &to->strings) < 0)
		return out_of_memory(why);
	merge.mover = (struct mover){.from = from, .to = to, .strings = &strings};
	err = move_all(&merge, name, why);
	to->most_frames += from->most_frames;
	to->most_text += from->most_text;
	mover_release(&merge.mover);
	vec_release(&merge.events);
	map_release(&merge.unfreed.last);
	vec_release(&merge.unfreed.latest);
	intern_move_release(&strings);
	return err;
}

int profile_merge(struct profile *to, const struct profile *from, const char *name, struct buf *why)
{
	const struct profile_part part = {.until_ns = UINT64_MAX, .event = UINT32_MAX, .also = UINT32_MAX};

	return merge_run(to, from, name, &part, why);
}

int profile_cut(struct profile *to, const struct profile *from, const struct profile_part *part, struct buf *why)
{
	int err = merge_run(to, from, NULL, part, why);

	if (!err && part->from_ns > to->start_ns) {
		to->start_realtime_ns += part->from_ns - to->start_ns;
		to->start_ns = part->from_ns;
	}
	if (!err && part->until_ns < to->end_ns)
		to->end_ns = part->until_ns;
	if (to->end_ns < to->start_ns)
		to->end_ns = to->start_ns;
	return err;
}

/* ---- the next window ---- */

/* Moves all events in their order, so that their indices stay. */
static void exchange_events(struct mover *m)
{
	for (size_t i = 0; i < m->from->events.len; i++) {
		struct profile_event event = m->from->events.items[i];

		move_texts(m, LAYOUT_EVENTS, &event);
		/* out of memory: the event's samples are lost */
		(void)map_put(&m->to->event_ids, event.name, m->to->events.len);
		(void)vec_push(&m->to->events, event);
	}
}

struct exchange {
	struct mover mover;
	uint64_t lost;
};

static int exchange_sample(void *context, const struct profile_sample *sample)
{
	struct exchange *exchange = context;
	struct mover *m = &exchange->mover;
	struct profile_sample moved = *sample;

	moved.node = mover_node(m, sample->node);
	moved.thread = mover_thread(m, sample->thread);
	moved.attributes = mover_text(m, sample->attributes);
	exchange->lost += profile_add(m->to, &moved) < 0;
	return 0;
}

/*
 * A loader that is behind has the samples of many windows. To move all of them, with their stacks, at the end of each
 * window would take time by the square of their number. So the tables stay until few samples are left, or until the
 * windows that have a timeline of their own have ended.
 */
static bool is_behind(const struct profile *profile, uint64_t until_ns)
{
	uint64_t next = profile->later[0].len;

	return profile->window_ns && until_ns == profile->until_ns + profile->window_ns &&
	       until_ns <= profile->far_ns &&
	       profile_later(profile) - next > 2 * (next + profile->samples.len);
}

static void next_of_many(struct profile *profile, uint64_t until_ns)
{
	struct timeline ended = profile->samples;

	profile->count -= ended.count;
	profile->samples = profile->later[0];
	memmove(profile->later, profile->later + 1, (PROFILE_LATER - 2) * sizeof(profile->later[0]));
	timeline_init(&profile->later[PROFILE_LATER - 2]);
	timeline_release(&ended);
	vec_clear(&profile->losses);
	vec_clear(&profile->facts);
	vec_clear(&profile->notes);
	vec_clear(&profile->usages);
	profile->host = (struct profile_host){0};
	profile->until_ns = until_ns;
}

uint64_t profile_exchange(struct profile *profile, uint64_t until_ns, struct intern_move *move)
{
	struct profile fresh, old = *profile;
	struct exchange exchange = {.mover = {.from = &old, .to = &fresh, .strings = move}};
	int err = 0;

	if (!move && is_behind(profile, until_ns)) {
		next_of_many(profile, until_ns);
		return 0;
	}
	(void)profile_init(&fresh); /* out of memory: the profile takes no samples */
	intern_release(&fresh.strings);
	fresh.strings = move ? *move->to : old.strings;
	if (move)
		move->to = &fresh.strings;
	fresh.window_ns = old.window_ns;
	profile_set_end(&fresh, until_ns);
	fresh.processes = old.processes;
	fresh.is_private = old.is_private;
	exchange_events(&exchange.mover);
	/* samples that cannot be read back are lost, like those for which there was no memory */
	for (size_t i = 0; i < PROFILE_LATER; i++)
		err |= timeline_each(&old.later[i], exchange_sample, &exchange);
	if (err)
		exchange.lost = profile_later(&old) - fresh.samples.len - profile_later(&fresh);
	mover_release(&exchange.mover);
	old.strings = (struct intern){0};
	profile_release(&old);
	*profile = fresh;
	if (move)
		move->to = &profile->strings;
	return exchange.lost;
}
