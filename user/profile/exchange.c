/* SPDX-License-Identifier: MIT */
#include "profile/exchange.h"

#include <errno.h>
#include <stdlib.h>

/* Copies an old profile to a fresh one. The maps hold the indices that were copied: index in `old` -> in `fresh`. */
struct mover {
	const struct profile *old;
	struct profile *fresh;
	struct intern_move *strings;
	struct map nodes, frames, threads, owners;
	struct vec(uint32_t) path;
	uint64_t lost;
};

static uint32_t text(struct mover *m, uint32_t id)
{
	return intern_moved(m->strings, id);
}

/* Moves all events in their order, so that their indices stay. */
static void move_events(struct mover *m)
{
	for (size_t i = 0; i < m->old->events.len; i++) {
		struct profile_event event = m->old->events.items[i];

		event.name = text(m, event.name);
		(void)vec_push(&m->fresh->events, event); /* out of memory: the event's samples are lost */
	}
}

static uint32_t move_frame(struct mover *m, uint32_t index)
{
	struct frame frame = m->old->frames.items[index];
	uint64_t known;

	if (map_get(&m->frames, index, &known))
		return (uint32_t)known;
	frame.name = text(m, frame.name);
	frame.class_name = text(m, frame.class_name);
	frame.signature = text(m, frame.signature);
	frame.module = text(m, frame.module);
	known = profile_frame(m->fresh, &frame);
	(void)map_put(&m->frames, index, known); /* here and below: when out of memory, it is moved again */
	return (uint32_t)known;
}

static uint32_t move_node(struct mover *m, uint32_t leaf)
{
	uint64_t known;

	if (map_get(&m->nodes, leaf, &known))
		return (uint32_t)known;
	vec_clear(&m->path);
	for (uint32_t node = leaf; node; node = m->old->nodes.items[node].parent)
		if (vec_push(&m->path, m->old->nodes.items[node].frame) < 0)
			return UINT32_MAX;
	for (size_t i = 0; i < m->path.len; i++)
		m->path.items[i] = move_frame(m, m->path.items[i]);
	for (size_t i = 0; i < m->path.len / 2; i++) {
		uint32_t swap = m->path.items[i];

		m->path.items[i] = m->path.items[m->path.len - 1 - i];
		m->path.items[m->path.len - 1 - i] = swap;
	}
	known = profile_stack(m->fresh, m->path.items, (uint32_t)m->path.len);
	(void)map_put(&m->nodes, leaf, known);
	return (uint32_t)known;
}

static uint32_t move_owner(struct mover *m, uint32_t index)
{
	struct profile_owner owner = m->old->owners.items[index];
	uint32_t *const texts[] = {
		&owner.executable,     &owner.application,  &owner.cgroup,	   &owner.container,
		&owner.container_kind, &owner.container_id, &owner.container_name, &owner.pod,
		&owner.executed_as,    &owner.runtime,	    &owner.pod_namespace,  &owner.pod_uid,
		&owner.libjvm,	       &owner.vm_flags,
	};
	uint64_t known;

	if (map_get(&m->owners, index, &known))
		return (uint32_t)known;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		*texts[i] = text(m, *texts[i]);
	known = profile_owner(m->fresh, &owner);
	(void)map_put(&m->owners, index, known);
	return (uint32_t)known;
}

static uint32_t move_thread(struct mover *m, uint32_t index)
{
	const struct profile_thread *thread = &m->old->threads.items[index];
	const struct intern *strings = &m->fresh->strings;
	const char *name, *process;
	uint64_t known, id;
	uint32_t owner;

	if (map_get(&m->threads, index, &known))
		return (uint32_t)known;
	name = intern_text(strings, text(m, thread->name));
	process = intern_text(strings, text(m, thread->process));
	owner = move_owner(m, thread->owner);
	if (map_get(&m->old->virtual_ids, index, &id))
		known = profile_virtual_thread(m->fresh, thread->pid, id, name, process, owner);
	else
		known = profile_thread(m->fresh, thread->pid, thread->tid, name, process, owner);
	(void)map_put(&m->threads, index, known);
	return (uint32_t)known;
}

static int move_sample(void *context, const struct profile_sample *sample)
{
	struct mover *m = context;
	struct profile_sample moved = *sample;

	moved.node = move_node(m, sample->node);
	moved.thread = move_thread(m, sample->thread);
	if (profile_add(m->fresh, &moved) < 0)
		m->lost++;
	return 0;
}

/* Samples that cannot be read back are counted as lost, like those for which there was no memory. */
static void move_samples(struct mover *m)
{
	uint64_t expected = m->old->later.len;

	if (timeline_each(&m->old->later, move_sample, m) < 0)
		m->lost = expected - m->fresh->samples.len - m->fresh->later.len;
	map_release(&m->nodes);
	map_release(&m->frames);
	map_release(&m->threads);
	map_release(&m->owners);
	vec_release(&m->path);
}

uint64_t profile_exchange(struct profile *profile, uint64_t until_ns, struct intern_move *move)
{
	struct profile fresh, old = *profile;
	struct mover mover = {.old = &old, .fresh = &fresh, .strings = move};

	(void)profile_init(&fresh); /* out of memory: a profile that takes no sample */
	intern_release(&fresh.strings);
	fresh.strings = move ? *move->to : old.strings;
	if (move)
		move->to = &fresh.strings;
	fresh.until_ns = until_ns;
	fresh.processes = old.processes;
	fresh.is_private = old.is_private;
	move_events(&mover);
	move_samples(&mover);
	old.strings = (struct intern){0};
	profile_release(&old);
	*profile = fresh;
	if (move)
		move->to = &profile->strings;
	return mover.lost;
}
