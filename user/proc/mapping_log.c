/* SPDX-License-Identifier: MIT */
#include "proc/mapping_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct mapping_note *slot_of(const struct mapping_log *log, uint64_t number)
{
	return &log->notes[number % MAPPING_LOG_NOTES];
}

/* Returns NULL when there is no such note, or when it was overwritten. */
static const struct mapping_note *find_note(const struct mapping_log *log, uint64_t number)
{
	return number && number + MAPPING_LOG_NOTES > log->count ? slot_of(log, number) : NULL;
}

static const struct mapping_note *last_note(const struct mapping_log *log, pid_t pid)
{
	uint64_t number = 0;

	return map_get(&log->last, (uint64_t)pid, &number) ? find_note(log, number) : NULL;
}

static void forget_note(struct mapping_log *log, uint64_t number)
{
	struct mapping_note *note = slot_of(log, number);
	uint64_t last;

	if (map_get(&log->last, (uint64_t)note->pid, &last) && last == number)
		map_remove(&log->last, (uint64_t)note->pid);
	free(note->mapping.path);
	*note = (struct mapping_note){0};
}

void mapping_log_release(struct mapping_log *log)
{
	for (size_t i = 0; log->notes && i < MAPPING_LOG_NOTES; i++)
		free(log->notes[i].mapping.path);
	free(log->notes);
	map_release(&log->last);
	*log = (struct mapping_log){0};
}

int mapping_log_add(struct mapping_log *log, const struct mapping_note *note)
{
	uint64_t number = log->count + 1;
	struct mapping_note added = *note;

	if (!log->notes)
		log->notes = calloc(MAPPING_LOG_NOTES, sizeof(*log->notes));
	if (!log->notes)
		return -ENOMEM;
	if (number > MAPPING_LOG_NOTES)
		forget_note(log, number - MAPPING_LOG_NOTES);
	added.previous = 0;
	(void)map_get(&log->last, (uint64_t)note->pid, &added.previous);
	added.mapping.path = note->kind == MAPPING_NOTE_MAPPED ? strdup(note->mapping.path) : NULL;
	if ((note->kind == MAPPING_NOTE_MAPPED && !added.mapping.path) ||
	    map_put(&log->last, (uint64_t)note->pid, number) < 0) {
		free(added.mapping.path);
		return -ENOMEM;
	}
	*slot_of(log, number) = added;
	log->count = number;
	return 0;
}

/* The last fork or exec before this time. Notes are read CPU after CPU, so the list is not in order of time. */
static const struct mapping_note *find_beginning(const struct mapping_log *log, pid_t pid, uint64_t time_ns)
{
	const struct mapping_note *found = NULL;

	for (const struct mapping_note *note = last_note(log, pid); note; note = find_note(log, note->previous))
		if (note->kind != MAPPING_NOTE_MAPPED && note->time_ns <= time_ns &&
		    (!found || note->time_ns > found->time_ns))
			found = note;
	return found;
}

const struct mapping_note *mapping_log_next(const struct mapping_log *log, uint64_t *number)
{
	if (*number >= log->count)
		return NULL;
	++*number;
	if (*number + MAPPING_LOG_NOTES <= log->count)
		*number = log->count - MAPPING_LOG_NOTES + 1;
	return slot_of(log, *number);
}

bool mapping_log_has_exec(const struct mapping_log *log, pid_t pid, uint64_t since_ns)
{
	for (const struct mapping_note *note = last_note(log, pid); note; note = find_note(log, note->previous))
		if (note->kind == MAPPING_NOTE_EXEC && note->time_ns > since_ns)
			return true;
	return false;
}

int mapping_log_find(const struct mapping_log *log, pid_t pid, uint64_t time_ns, struct maps *maps, pid_t *ret_parent,
		     uint64_t *ret_forked_ns)
{
	const struct mapping_note *beginning = find_beginning(log, pid, time_ns);
	int err = 0;

	if (!beginning)
		return -ENOENT;
	*ret_parent = beginning->kind == MAPPING_NOTE_FORKED ? beginning->parent : 0;
	*ret_forked_ns = beginning->time_ns;
	/* Newest first: where mappings overlap, the older one no longer existed and is not added. */
	for (const struct mapping_note *note = last_note(log, pid); !err && note; note = find_note(log, note->previous))
		if (note->kind == MAPPING_NOTE_MAPPED && note->time_ns >= beginning->time_ns &&
		    note->time_ns <= time_ns && maps->list.len < MAPPING_LOG_MAPPINGS)
			err = maps_add(maps, &note->mapping);
	return err;
}
