/* SPDX-License-Identifier: MIT */
#include "profile/mover.h"

#include <stdlib.h>

uint32_t mover_text(struct mover *m, uint32_t id)
{
	return intern_moved(m->strings, id);
}

static uint32_t move_frame(struct mover *m, uint32_t index)
{
	struct frame frame = m->from->frames.items[index];
	uint64_t known;

	if (map_get(&m->frames, index, &known))
		return (uint32_t)known;
	frame.name = mover_text(m, frame.name);
	frame.class_name = mover_text(m, frame.class_name);
	frame.signature = mover_text(m, frame.signature);
	frame.module = mover_text(m, frame.module);
	known = profile_frame(m->to, &frame);
	(void)map_put(&m->frames, index, known); /* here and below: if out of memory, the row is copied again */
	return (uint32_t)known;
}

uint32_t mover_node(struct mover *m, uint32_t leaf)
{
	uint64_t known;

	if (map_get(&m->nodes, leaf, &known))
		return (uint32_t)known;
	vec_clear(&m->path);
	for (uint32_t node = leaf; node; node = m->from->nodes.items[node].parent)
		if (vec_push(&m->path, m->from->nodes.items[node].frame) < 0)
			return UINT32_MAX;
	for (size_t i = 0; i < m->path.len; i++)
		m->path.items[i] = move_frame(m, m->path.items[i]);
	for (size_t i = 0; i < m->path.len / 2; i++) {
		uint32_t swap = m->path.items[i];

		m->path.items[i] = m->path.items[m->path.len - 1 - i];
		m->path.items[m->path.len - 1 - i] = swap;
	}
	known = profile_stack(m->to, m->path.items, (uint32_t)m->path.len);
	(void)map_put(&m->nodes, leaf, known);
	return (uint32_t)known;
}

static uint32_t move_owner(struct mover *m, uint32_t index)
{
	struct profile_owner owner = m->from->owners.items[index];
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
		*texts[i] = mover_text(m, *texts[i]);
	known = profile_owner(m->to, &owner);
	(void)map_put(&m->owners, index, known);
	return (uint32_t)known;
}

uint32_t mover_thread(struct mover *m, uint32_t index)
{
	const struct profile_thread *thread = &m->from->threads.items[index];
	const struct intern *strings = &m->to->strings;
	const char *name, *process;
	uint64_t known, id;
	uint32_t owner;

	if (map_get(&m->threads, index, &known))
		return (uint32_t)known;
	name = intern_text(strings, mover_text(m, thread->name));
	process = intern_text(strings, mover_text(m, thread->process));
	owner = move_owner(m, thread->owner);
	if (map_get(&m->from->virtual_ids, index, &id))
		known = profile_virtual_thread(m->to, thread->pid, id, name, process, owner);
	else
		known = profile_thread(m->to, thread->pid, thread->tid, name, process, owner);
	(void)map_put(&m->threads, index, known);
	return (uint32_t)known;
}

void mover_release(struct mover *m)
{
	map_release(&m->nodes);
	map_release(&m->frames);
	map_release(&m->threads);
	map_release(&m->owners);
	vec_release(&m->path);
}
