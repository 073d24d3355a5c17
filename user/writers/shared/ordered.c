/* SPDX-License-Identifier: MIT */
#include "writers/shared/ordered.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/timeline.h"

/* So many rows that stand for so many samples each, on an average, are parts of sums, and have no times. */
#define PARTS_MIN (1u << 18)
#define PARTS_COUNT (1ull << 31)

static bool has_cgroup(const struct profile *profile, uint32_t thread)
{
	const struct profile_owner *owner = &profile->owners.items[profile->threads.items[thread].owner];

	return *profile_text(profile, owner->cgroup);
}

static int add_thread(struct threads *threads, const struct profile *profile, uint32_t thread)
{
	const struct profile_thread *of = &profile->threads.items[thread];
	uint64_t key = (uint64_t)of->pid << 32 | of->tid, first = thread;
	bool has_id = of->tid && of->tid != PROFILE_VIRTUAL;

	if (has_id && map_get(&threads->firsts, key, &first) &&
	    profile->threads.items[first].process != of->process)
		first = thread;
	if ((has_id && first == thread && map_put(&threads->firsts, key, thread) < 0) ||
	    vec_push(&threads->rows, (uint32_t)first) < 0 || vec_push(&threads->lasts, thread) < 0)
		return -ENOMEM;
	if (has_cgroup(profile, thread) || !has_cgroup(profile, threads->lasts.items[first]))
		threads->lasts.items[first] = thread;
	return 0;
}

int threads_extend(struct threads *threads, const struct profile *profile)
{
	int err = 0;

	while (!err && threads->lasts.len < profile->threads.len)
		err = add_thread(threads, profile, (uint32_t)threads->lasts.len);
	return err;
}

void threads_release(struct threads *threads)
{
	map_release(&threads->firsts);
	vec_release(&threads->rows);
	vec_release(&threads->lasts);
}

/* Merges samples of one event. */
struct merger {
	struct ordered *ordered;
	struct map *rows; /* by event: thread << 32 | node -> index */
};

static int compare(const void *a, const void *b, void *context)
{
	const struct profile_sample *x = a, *y = b;
	const struct ordered *ordered = context;
	uint32_t thread = ordered->threads.rows.items[x->thread], other = ordered->threads.rows.items[y->thread];

	return vec_order(x->event, y->event) ?: vec_order(thread, other) ?: vec_order(x->time_ns, y->time_ns);
}

static int add(void *context, const struct profile_sample *sample)
{
	struct ordered *ordered = context;

	return vec_push(&ordered->samples, *sample);
}

static int merge(void *context, const struct profile_sample *sample)
{
	struct merger *m = context;
	uint64_t key = (uint64_t)sample->thread << 32 | sample->node, index;
	struct profile_sample *row;

	if (!map_get(&m->rows[sample->event], key, &index)) {
		if (map_put(&m->rows[sample->event], key, m->ordered->samples.len) < 0)
			return -ENOMEM;
		return vec_push(&m->ordered->samples, *sample);
	}
	row = &m->ordered->samples.items[index];
	row->weight += sample->weight;
	row->count = sample->count < UINT32_MAX - row->count ? row->count + sample->count : UINT32_MAX;
	trace_keep_common(row, sample);
	return 0;
}

int ordered_merge(struct ordered *ordered, const struct profile *profile)
{
	struct merger m = {.ordered = ordered, .rows = calloc(profile->events.len + 1, sizeof(*m.rows))};
	int err;

	*ordered = (struct ordered){.is_merged = true};
	err = m.rows ? timeline_each(&profile->samples, merge, &m) : -ENOMEM;

	for (size_t i = 0; m.rows && i < profile->events.len; i++)
		map_release(&m.rows[i]);
	free(m.rows);
	return err;
}

static bool are_parts(const struct timeline *samples)
{
	return samples->len > PARTS_MIN && samples->count / PARTS_COUNT > samples->len;
}

int ordered_build(struct ordered *ordered, const struct profile *profile)
{
	int err;

	*ordered = (struct ordered){0};
	if (profile->samples.len > ORDERED_MAX || are_parts(&profile->samples))
		err = ordered_merge(ordered, profile);
	else
		err = timeline_each(&profile->samples, add, ordered);
	if (!err)
		err = threads_extend(&ordered->threads, profile);
	if (!err && ordered->samples.len)
		qsort_r(ordered->samples.items, ordered->samples.len, sizeof(*ordered->samples.items), compare,
			ordered);
	return err;
}

uint32_t ordered_thread(const struct ordered *ordered, const struct profile_sample *sample)
{
	return ordered->threads.lasts.items[ordered->threads.rows.items[sample->thread]];
}

void ordered_release(struct ordered *ordered)
{
	vec_release(&ordered->samples);
	threads_release(&ordered->threads);
}
