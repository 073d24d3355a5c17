/* SPDX-License-Identifier: MIT */
#include "profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define NONE UINT32_MAX
#define STACK_MAX 4096 /* frames by which one stack may grow the tables */
#define OTHERS "[others]"

const char *const profile_units[PROFILE_UNIT_MAX] = {"ns", "count", "bytes"};

static const struct stack_node root_node = {.parent = 0, .frame = NONE};

int profile_init(struct profile *profile)
{
	int err;

	memset(profile, 0, sizeof(*profile));
	profile->max_bytes = SIZE_MAX;
	timeline_init(&profile->samples);
	for (size_t i = 0; i < PROFILE_LATER; i++)
		timeline_init(&profile->later[i]);
	err = intern_init(&profile->strings);
	if (err < 0)
		return err;
	profile->strings.longest = PROFILE_TEXT_MAX;
	err = vec_push(&profile->nodes, root_node);
	if (!err)
		err = vec_push(&profile->owners, (struct profile_owner){0});
	if (err < 0)
		profile_release(profile);
	return err;
}

void profile_release(struct profile *profile)
{
	if (!profile)
		return;
	intern_release(&profile->strings);
	vec_release(&profile->events);
	vec_release(&profile->frames);
	vec_release(&profile->nodes);
	vec_release(&profile->owners);
	vec_release(&profile->threads);
	timeline_release(&profile->samples);
	for (size_t i = 0; i < PROFILE_LATER; i++)
		timeline_release(&profile->later[i]);
	vec_release(&profile->losses);
	vec_release(&profile->facts);
	vec_release(&profile->notes);
	vec_release(&profile->usages);
	map_release(&profile->frame_ids);
	map_release(&profile->owner_ids);
	map_release(&profile->node_ids);
	map_release(&profile->thread_ids);
	map_release(&profile->java_ids);
	map_release(&profile->virtual_ids);
	map_release(&profile->virtual_numbers);
	map_release(&profile->event_ids);
}

static size_t vec_bytes_soon(size_t len, size_t size, size_t bytes)
{
	while (size && len > size)
		size *= 2;
	return size * bytes;
}

#define BYTES(rows) ((rows)->size * sizeof(*(rows)->items))
#define BYTES_SOON(rows, more) vec_bytes_soon((rows)->len + (more), (rows)->size, sizeof(*(rows)->items))

struct profile_rows profile_rows(const struct profile *profile)
{
	return (struct profile_rows){profile->nodes.len, profile->frames.len, profile->threads.len,
				     intern_memory(&profile->strings)};
}

size_t profile_bytes(const struct profile *profile)
{
	return BYTES(&profile->nodes) + BYTES(&profile->frames) + BYTES(&profile->threads) + BYTES(&profile->owners) +
	       map_bytes(&profile->node_ids) + map_bytes(&profile->frame_ids) + map_bytes(&profile->thread_ids) +
	       map_bytes(&profile->java_ids) + map_bytes(&profile->virtual_ids) + map_bytes(&profile->virtual_numbers) +
	       map_bytes(&profile->owner_ids);
}

size_t profile_bytes_soon(const struct profile *profile, const struct profile_rows *more)
{
	size_t nodes = STACK_MAX + more->nodes, frames = STACK_MAX + more->frames;

	return BYTES_SOON(&profile->nodes, nodes) + BYTES_SOON(&profile->frames, frames) +
	       BYTES_SOON(&profile->threads, STACK_MAX + more->threads) + BYTES_SOON(&profile->owners, STACK_MAX) +
	       map_bytes_soon(&profile->node_ids, nodes) + map_bytes_soon(&profile->frame_ids, frames) +
	       map_bytes_soon(&profile->thread_ids, 1 + more->threads) + map_bytes_soon(&profile->java_ids, 1) +
	       map_bytes_soon(&profile->virtual_ids, 1) + map_bytes_soon(&profile->virtual_numbers, 1) +
	       map_bytes_soon(&profile->owner_ids, 1) + more->text_bytes;
}

bool profile_is_full(const struct profile *profile, const struct profile_rows *reserve)
{
	return profile_bytes_soon(profile, reserve) > profile->max_bytes;
}

/*
 * Returns the index of an equal row; if there is none, returns NONE, with the key under which to add it. Rows of equal
 * hash take successive keys.
 */
static uint32_t row_find(const struct map *ids, const void *items, const void *row, size_t bytes, uint64_t *ret_key)
{
	uint64_t key = hash_bytes(row, bytes, 0), known;
	uint32_t found = NONE;

	for (; found == NONE && map_get(ids, key, &known); key++)
		if (memcmp((const char *)items + known * bytes, row, bytes) == 0)
			found = (uint32_t)known;
	*ret_key = key;
	return found;
}

/* Like row_find(), but adds a new row. Returns NONE when out of memory. */
static uint32_t row_index(struct map *ids, void **items, size_t *len, size_t *size, const void *row, size_t bytes)
{
	uint64_t key;
	uint32_t known = row_find(ids, *items, row, bytes, &key);

	if (known != NONE)
		return known;
	if (*len >= NONE || vec_grow(items, size, *len + 1, bytes) < 0 || map_put(ids, key, *len) < 0)
		return NONE;
	memcpy((char *)*items + *len * bytes, row, bytes);
	return (uint32_t)(*len)++;
}

#define ROW_INDEX(ids, rows, row) \
	row_index(ids, (void **)&(rows)->items, &(rows)->len, &(rows)->size, row, sizeof(*(row)))

/* No padding to hash or to compare. */
_Static_assert(sizeof(struct frame) == 7 * 4, "padding in struct frame");
_Static_assert(sizeof(struct profile_owner) == 8 + 18 * 4, "padding in struct profile_owner");
_Static_assert(sizeof(struct profile_thread) == 5 * 4, "padding in struct profile_thread");

uint32_t profile_frame(struct profile *profile, const struct frame *frame)
{
	return ROW_INDEX(&profile->frame_ids, &profile->frames, frame);
}

uint32_t profile_known_frame(const struct profile *profile, const struct frame *frame)
{
	uint64_t key;

	return row_find(&profile->frame_ids, profile->frames.items, frame, sizeof(*frame), &key);
}

uint32_t profile_owner(struct profile *profile, const struct profile_owner *owner)
{
	uint32_t index = ROW_INDEX(&profile->owner_ids, &profile->owners, owner);

	return index == NONE ? 0 : index;
}

void profile_complete_owner(struct profile_owner *owner, const struct profile_owner *later)
{
	if (owner->pid != later->pid || owner->start_ticks != later->start_ticks ||
	    owner->executable != later->executable)
		return;
	if (!owner->attributes) {
		owner->service = later->service;
		owner->attributes = later->attributes;
	}
	if (!later->application || (owner->application && owner->application != later->application))
		return;
	owner->application = later->application;
	owner->executed_as = later->executed_as;
	owner->runtime = later->runtime;
	owner->libjvm = later->libjvm;
	owner->vm_flags = later->vm_flags;
}

uint32_t profile_child(struct profile *profile, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t index = (uint32_t)profile->nodes.len;
	uint64_t known;

	if (map_get(&profile->node_ids, key, &known))
		return (uint32_t)known;
	if (index == NONE || (profile->most_nodes && index >= profile->most_nodes) ||
	    vec_push(&profile->nodes, (struct stack_node){.parent = parent, .frame = frame}) < 0)
		return NONE;
	if (map_put(&profile->node_ids, key, index) < 0) {
		profile->nodes.len--;
		return NONE;
	}
	return index;
}

static uint32_t name_of(struct profile *profile, const char *name)
{
	return name ? intern_bytes(&profile->strings, name, PROFILE_NAME_MAX) : 0;
}

static uint32_t known_name(const struct profile *profile, const char *name)
{
	char cut[PROFILE_NAME_MAX + 1];

	snprintf(cut, sizeof(cut), "%.*s", PROFILE_NAME_MAX, name);
	return intern_known(&profile->strings, cut);
}

/* The string, or the one it is cut to. */
static uint32_t cut_name(struct profile *profile, uint32_t id)
{
	const char *name = profile_text(profile, id);

	return strnlen(name, PROFILE_NAME_MAX + 1) <= PROFILE_NAME_MAX ? id : name_of(profile, name);
}

static uint32_t thread_row(struct profile *profile, struct profile_thread row)
{
	row.name = cut_name(profile, row.name);
	row.process = cut_name(profile, row.process);
	return ROW_INDEX(&profile->thread_ids, &profile->threads, &row);
}

uint32_t profile_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name, const char *process,
			uint32_t owner)
{
	const struct profile_thread thread = {
		.pid = pid,
		.tid = tid,
		.name = name_of(profile, name),
		.process = name_of(profile, process),
		.owner = owner,
	};

	return thread_row(profile, thread);
}

static uint32_t find_row(const struct profile *profile, const struct profile_thread *row)
{
	uint64_t key;

	return row_find(&profile->thread_ids, profile->threads.items, row, sizeof(*row), &key);
}

/* The index of this thread, or NONE. */
static uint32_t find_thread(const struct profile *profile, uint32_t pid, uint32_t tid, const char *name,
			    const char *process, uint32_t owner)
{
	struct profile_thread thread = {
		.pid = pid,
		.tid = tid,
		.name = known_name(profile, name),
		.process = known_name(profile, process),
		.owner = owner,
	};

	return find_row(profile, &thread);
}

uint32_t profile_known_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *name,
			      const char *process, uint32_t owner)
{
	uint32_t index = find_thread(profile, pid, tid, name, process, owner);

	return index == NONE ? profile_thread(profile, 0, 0, OTHERS, OTHERS, 0) : index;
}

#define MAX_NAME 256

/* Writes the name with one '#' for each run of digits. Returns false if there is none. */
static bool unnumbered(char to[MAX_NAME], const char *name)
{
	bool has_number = false;
	size_t len = 0;

	for (; *name && len < MAX_NAME - 1; name++) {
		bool is_digit = *name >= '0' && *name <= '9';

		if (!is_digit)
			to[len++] = *name;
		else if (!len || to[len - 1] != '#')
			to[len++] = '#';
		has_number |= is_digit;
	}
	to[len] = '\0';
	return has_number;
}

/* Returns the name for the row of a virtual thread: its own, or the one without numbers, which is in `room` then. */
static const char *virtual_name(struct profile *profile, uint32_t pid, const char *name, char room[MAX_NAME])
{
	uint64_t key, count = 0;

	if (!unnumbered(room, name))
		return name;
	key = (uint64_t)intern_str(&profile->strings, room) << 32 | pid;
	map_get(&profile->virtual_numbers, key, &count);
	if (count >= PROFILE_MAX_NUMBERED || map_put(&profile->virtual_numbers, key, count + 1) < 0)
		return room;
	return name;
}

/* `index` is that of a row of this name, or NONE. */
static uint32_t virtual_thread(struct profile *profile, uint32_t index, uint32_t pid, uint64_t id, const char *name,
			       const char *process, uint32_t owner)
{
	char room[MAX_NAME];
	uint64_t known;

	if (!*name || (index == NONE && profile->virtual_ids.len >= PROFILE_MAX_VIRTUAL))
		return profile_thread(profile, pid, PROFILE_VIRTUAL, PROFILE_NO_NAME, process, owner);
	if (index == NONE)
		index = profile_thread(profile, pid, PROFILE_VIRTUAL, virtual_name(profile, pid, name, room),
				       process, owner);
	if (!map_get(&profile->virtual_ids, index, &known))
		(void)map_put(&profile->virtual_ids, index, id);
	else if (known != id)
		(void)map_put(&profile->virtual_ids, index, 0); /* replaces a value: cannot fail */
	return index;
}

uint32_t profile_virtual_thread(struct profile *profile, uint32_t pid, uint64_t id, const char *name,
				const char *process, uint32_t owner)
{
	return virtual_thread(profile, find_thread(profile, pid, PROFILE_VIRTUAL, name, process, owner), pid, id, name,
			      process, owner);
}

void profile_set_java_id(struct profile *profile, uint32_t thread, uint64_t id)
{
	if (id && thread < profile->threads.len && profile->threads.items[thread].tid)
		(void)map_put(&profile->java_ids, thread, id); /* out of memory: it stays unknown */
}

bool profile_java_id(const struct profile *profile, uint32_t thread, uint64_t *ret)
{
	*ret = 0;
	return map_get(&profile->virtual_ids, thread, ret) || map_get(&profile->java_ids, thread, ret);
}

uint32_t profile_thread_row(struct profile *profile, struct profile_thread row, const uint64_t *java_id)
{
	uint32_t index;

	if (!java_id || row.tid != PROFILE_VIRTUAL) {
		index = thread_row(profile, row);
		profile_set_java_id(profile, index, java_id ? *java_id : 0);
		return index;
	}
	row.name = cut_name(profile, row.name);
	row.process = cut_name(profile, row.process);
	return virtual_thread(profile, find_row(profile, &row), row.pid, *java_id, profile_text(profile, row.name),
			      profile_text(profile, row.process), row.owner);
}

uint64_t profile_virtual_id(const struct profile *profile, uint32_t thread)
{
	uint64_t id = 0;

	map_get(&profile->virtual_ids, thread, &id);
	return id;
}

uint32_t profile_stack(struct profile *profile, const uint32_t *frames, uint32_t depth)
{
	uint32_t node = 0;

	for (uint32_t i = 0; i < depth && node != NONE; i++)
		node = frames[i] < profile->frames.len ? profile_child(profile, node, frames[i]) : NONE;
	return node;
}

uint32_t profile_known_stack(const struct profile *profile, const uint32_t *frames, uint32_t depth)
{
	uint64_t node = 0;

	for (uint32_t i = 0; i < depth && node != NONE; i++)
		if (!map_get(&profile->node_ids, node << 32 | frames[i], &node))
			node = NONE;
	return (uint32_t)node;
}

uint32_t profile_event(struct profile *profile, const char *name, enum profile_unit unit, uint64_t interval)
{
	struct profile_event event = {.unit = unit, .interval = interval};
	char cut[PROFILE_NAME_MAX + 1];
	uint64_t index = profile->events.len;
	BUF(clean);

	snprintf(cut, sizeof(cut), "%.*s", PROFILE_NAME_MAX, name);
	text_add_line(&clean, cut);
	event.name = clean.failed ? 0 : intern_str(&profile->strings, clean.data);
	if (map_get(&profile->event_ids, event.name, &index))
		return (uint32_t)index;
	if (index >= PROFILE_EVENTS_MAX || map_put(&profile->event_ids, event.name, index) < 0 ||
	    vec_push(&profile->events, event) < 0)
		return NONE;
	return (uint32_t)index;
}

static struct timeline *timeline_of(struct profile *profile, uint64_t time_ns)
{
	uint64_t windows = 0;

	if (!profile->until_ns || time_ns < profile->until_ns)
		return &profile->samples;
	if (time_ns < profile->far_ns)
		windows = (time_ns - profile->until_ns) / profile->window_ns;
	return &profile->later[time_ns < profile->far_ns ? windows : PROFILE_LATER - 1];
}

void profile_set_end(struct profile *profile, uint64_t until_ns)
{
	profile->until_ns = until_ns;
	profile->far_ns = profile->window_ns ? until_ns + (PROFILE_LATER - 1) * profile->window_ns : 0;
}

uint64_t profile_later(const struct profile *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PROFILE_LATER; i++)
		sum += profile->later[i].len;
	return sum;
}

int profile_add(struct profile *profile, const struct profile_sample *sample)
{
	if (sample->event >= profile->events.len || sample->thread >= profile->threads.len ||
	    sample->node >= profile->nodes.len)
		return -ENOMEM;
	if (sample->count > PROFILE_COUNT_MAX - profile->count || sample->weight > PROFILE_WEIGHT_MAX - profile->weight)
		return -EOVERFLOW;
	profile->count += sample->count;
	profile->weight += sample->weight;
	profile->has_attributes |= sample->attributes != 0;
	return timeline_add(timeline_of(profile, sample->time_ns), sample);
}

void profile_add_note(struct profile *profile, const struct profile_note *note, const char *first,
		      const char *second)
{
	struct profile_note row = *note;

	if (profile->notes.len >= PROFILE_NOTES_MAX)
		return;
	row.texts[0] = intern_str(&profile->strings, first ? first : "");
	row.texts[1] = intern_str(&profile->strings, second ? second : "");
	(void)vec_push(&profile->notes, row);
}

int profile_add_usage(struct profile *profile, const struct profile_usage *usage)
{
	if (profile->usages.len >= PROFILE_USAGES_MAX)
		return -EFBIG;
	return vec_push(&profile->usages, *usage);
}

void profile_add_loss(struct profile *profile, uint64_t count, const char *text)
{
	struct profile_loss loss = {.count = count, .text = intern_str(&profile->strings, text)};

	if (count && profile->losses.len < PROFILE_FACTS_MAX)
		(void)vec_push(&profile->losses, loss);
}

void profile_add_fact(struct profile *profile, const char *key, const char *format, ...)
{
	BUF(value);
	va_list args;

	if (profile->facts.len >= PROFILE_FACTS_MAX)
		return;
	va_start(args, format);
	buf_vprintf(&value, format, args);
	va_end(args);
	(void)vec_push(&profile->facts, (struct profile_fact){
						.key = intern_str(&profile->strings, key),
						.value = intern_str(&profile->strings, value.data),
					});
}

uint32_t profile_waiter(const struct profile *profile, uint32_t leaf)
{
	for (uint32_t node = leaf; node; node = profile->nodes.items[node].parent)
		if (profile_leaf(profile, node)->kind == FRAME_WAKER)
			return profile->nodes.items[node].parent;
	return leaf;
}

/* A thread that waits for a CPU is runnable. So is one that has a CPU: its stack has no state. */
static enum thread_state state_of_stack(const struct profile *profile, uint32_t leaf)
{
	uint32_t node = profile_waiter(profile, leaf);

	if (!node || profile_leaf(profile, node)->kind != FRAME_STATE ||
	    !strcmp(profile_text(profile, profile_leaf(profile, node)->name), "[runnable]"))
		return THREAD_RUNNABLE;
	return THREAD_SLEEPING;
}

enum thread_state thread_state_of(const struct profile *profile, const struct profile_sample *sample)
{
	const char *event = profile_event_name(profile, sample->event);
	bool is_cpu = text_is_word(event, "cpu ctimer itimer cpu-clock task-clock cpu-time");

	if (!is_cpu && !text_is_word(event, "wall offcpu wakeup"))
		return THREAD_STATE_UNKNOWN;
	if (sample->address && sample->address < THREAD_STATES)
		return (enum thread_state)sample->address;
	return is_cpu ? THREAD_DEFAULT : state_of_stack(profile, sample->node);
}
