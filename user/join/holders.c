/* SPDX-License-Identifier: MIT */
#include "join/holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "proc/process.h"
#include "proc/room.h"

#define BYTES_MAX (64u << 20)
#define SWEEP_NS (1000ull * 1000 * 1000)

struct release {
	uint64_t time_ns;
	struct held *by; /* owned; NULL: only the thread is known */
	uint32_t owner; /* its tid */
};

struct vec_of_releases vec(struct release);

struct lock_history {
	uint64_t id;
	pid_t pid;
	uint64_t start_ticks;
	struct payer payer; /* of the process at first */
	struct vec_of_releases releases; /* oldest first */
};

static size_t release_bytes(const struct release *release)
{
	return sizeof(*release) + (release->by ? release->by->bytes : 0);
}

static void free_first(struct lock_history *history, size_t count)
{
	struct vec_of_releases *releases = &history->releases;
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++) {
		bytes += release_bytes(&releases->items[i]);
		held_free(releases->items[i].by);
	}
	room_give(ROOM_HOLDERS, &history->payer, bytes);
	memmove(releases->items, releases->items + count, (releases->len - count) * sizeof(*releases->items));
	releases->len -= count;
}

static void free_history(struct lock_history *history)
{
	free_first(history, history->releases.len);
	vec_release(&history->releases);
	free(history);
}

void holders_release(struct holders *holders)
{
	uint64_t key, value;

	for (size_t cursor = 0; map_next(&holders->locks, &cursor, &key, &value);)
		free_history((void *)(uintptr_t)value);
	map_release(&holders->locks);
}

/* Returns the index of the first release after this time. */
static size_t first_after(const struct lock_history *history, uint64_t time_ns)
{
	return vec_up_to(&history->releases, time_ns);
}

/* Removes the releases until this time, of one payer or of all, and the locks that have none after it. */
static void sweep(struct holders *holders, uint64_t until_ns, const struct payer *payer)
{
	uint64_t key, value;

	for (size_t cursor = 0; map_next(&holders->locks, &cursor, &key, &value);) {
		struct lock_history *history = (void *)(uintptr_t)value;

		if (payer && history->payer.key != payer->key)
			continue;
		free_first(history, first_after(history, until_ns));
		if (history->releases.len)
			continue;
		free_history(history);
		map_remove(&holders->locks, key);
	}
}

void holders_sweep(struct holders *holders, uint64_t now_ns)
{
	if (now_ns < holders->swept_ns + SWEEP_NS)
		return;
	holders->swept_ns = now_ns;
	sweep(holders, now_ns - HOLDERS_KEEP_NS, NULL);
}

/* While the payer has no room for a record, removes the older half of his. */
static void make_room(struct holders *holders, const struct decision *decision, uint64_t now_ns)
{
	const struct payer *payer = &decision->process->payer;
	size_t bytes = sizeof(struct release) + decision->sample->head.size;

	holders_sweep(holders, now_ns);
	room_set_size(ROOM_HOLDERS, BYTES_MAX);
	for (uint64_t keep_ns = HOLDERS_KEEP_NS / 2; keep_ns && !room_has(ROOM_HOLDERS, payer, bytes); keep_ns /= 2)
		sweep(holders, now_ns - keep_ns, payer);
}

static struct lock_history *find(const struct holders *holders, const struct process *process, uint64_t id,
				 uint64_t *ret_key)
{
	struct lock_history *history;

	*ret_key = (id ^ (uint64_t)process->pid << 40) * 0x9e3779b97f4a7c15ull;
	history = map_get_ptr(&holders->locks, *ret_key);
	return history && history->id == id && history->pid == process->pid &&
			       history->start_ticks == process->start_ticks
		       ? history
		       : NULL;
}

static struct lock_history *find_or_make(struct holders *holders, const struct process *process, uint64_t id)
{
	uint64_t key;
	struct lock_history *history = find(holders, process, id, &key);

	if (history || map_get_ptr(&holders->locks, key)) /* two locks with one key: the second is not followed */
		return history;
	history = calloc(1, sizeof(*history));
	if (!history)
		return NULL;
	history->id = id;
	history->pid = process->pid;
	history->start_ticks = process->start_ticks;
	history->payer = process->payer;
	if (map_put_ptr(&holders->locks, key, history) < 0) {
		free(history);
		return NULL;
	}
	return history;
}

/* Records of several CPUs are not quite in order of time. Owns release->by, even if there is no room. */
static void insert(struct lock_history *history, const struct release *release)
{
	struct vec_of_releases *releases = &history->releases;
	size_t at = first_after(history, release->time_ns);

	if (!room_take(ROOM_HOLDERS, &history->payer, release_bytes(release)))
		return held_free(release->by);
	if (vec_push(releases, *release) < 0) {
		room_give(ROOM_HOLDERS, &history->payer, release_bytes(release));
		return held_free(release->by);
	}
	memmove(releases->items + at + 1, releases->items + at, (releases->len - 1 - at) * sizeof(*releases->items));
	releases->items[at] = *release;
}

void holders_add(struct holders *holders, const struct decision *decision, uint64_t now_ns)
{
	struct release release = {.time_ns = decision->sample->head.time_ns, .owner = decision->sample->ns_tid};
	struct decision by = *decision;
	struct lock_history *history;

	make_room(holders, decision, now_ns);
	history = find_or_make(holders, decision->process, decision->sample->waker);
	by.java = NULL;
	release.by = history ? held_new(&by, now_ns) : NULL;
	if (release.by)
		insert(history, &release);
}

void holders_add_wait(struct holders *holders, const struct decision *wait, uint64_t now_ns)
{
	const struct duet_lock *lock = holders_lock(wait->sample);
	struct release release = {.time_ns = wait->sample->head.time_ns, .owner = lock ? lock->owner : 0};
	struct lock_history *history;

	if (!release.owner || release.time_ns > now_ns) /* the process tells the time */
		return;
	make_room(holders, wait, now_ns);
	history = find_or_make(holders, wait->process, lock->id);
	if (!history || first_after(history, lock->begin_ns) < first_after(history, release.time_ns))
		return;
	insert(history, &release);
}

const struct duet_lock *holders_lock(const struct duet_sample *sample)
{
	const struct duet_attribute *attribute = attribute_find(sample, DUET_ATTRIBUTE_LOCK);

	return attribute ? (const struct duet_lock *)(attribute + 1) : NULL;
}

static struct holding part_of(const struct release *release, uint64_t ns)
{
	bool is_known = release->by && held_is_current(release->by);

	return (struct holding){is_known ? &release->by->decision : NULL, release->owner, ns};
}

/* `first` and `end` are indices of the releases during the wait, HOLDERS_PARTS at most. */
static size_t split_by_all(const struct lock_history *history, size_t first, size_t end, uint64_t begin_ns,
			   uint64_t end_ns, struct holding *parts)
{
	for (size_t i = first; i < end; i++) {
		uint64_t until_ns = i + 1 < end ? history->releases.items[i].time_ns : end_ns;

		parts[i - first] = part_of(&history->releases.items[i], until_ns - begin_ns);
		begin_ns = until_ns;
	}
	return end - first;
}

static size_t split_by_some(const struct lock_history *history, size_t end, uint64_t begin_ns, uint64_t end_ns,
			    struct holding *parts)
{
	uint64_t step_ns = (end_ns - begin_ns) / HOLDERS_PARTS + 1;

	for (size_t i = 0; i < HOLDERS_PARTS; i++) {
		size_t at = first_after(history, begin_ns + i * step_ns + step_ns / 2);

		parts[i] = part_of(&history->releases.items[at < end ? at : end - 1], step_ns);
	}
	return HOLDERS_PARTS;
}

size_t holders_split(const struct holders *holders, const struct decision *wait,
		     struct holding ret_parts[HOLDERS_PARTS])
{
	const struct duet_lock *lock = holders_lock(wait->sample);
	uint64_t end_ns = wait->sample->head.time_ns, key;
	const struct lock_history *history = lock ? find(holders, wait->process, lock->id, &key) : NULL;
	size_t first, end;

	if (!lock || lock->begin_ns >= end_ns)
		return 0;
	first = history ? first_after(history, lock->begin_ns) : 0;
	end = history ? first_after(history, end_ns) : 0;
	if (first == end && lock->owner)
		ret_parts[0] = (struct holding){.owner = lock->owner, .ns = end_ns - lock->begin_ns};
	if (first == end)
		return lock->owner != 0;
	if (end - first <= HOLDERS_PARTS)
		return split_by_all(history, first, end, lock->begin_ns, end_ns, ret_parts);
	return split_by_some(history, end, lock->begin_ns, end_ns, ret_parts);
}
