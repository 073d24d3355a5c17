/* SPDX-License-Identifier: MIT */
/* Which threads of the profile are one in a JFR file, and their numbers. */
#include <errno.h>

#include "out/jfr_pools.h"

/* Threads without a tid of their own get numbers from here on; all tids are smaller. */
#define OTHER_THREADS (1u << 30)

uint32_t jfr_thread_row(const struct jfr_pools *p, uint32_t thread)
{
	return p->thread_rows.items[thread];
}

/* A thread has several rows in the profile if it was renamed, or if its container was not known at all times. */
static bool is_same_thread(const struct profile *profile, uint32_t a, uint32_t b)
{
	return profile->threads.items[a].pid == profile->threads.items[b].pid;
}

static bool has_cgroup(const struct profile *profile, uint32_t thread)
{
	const struct profile_owner *owner = &profile->owners.items[profile->threads.items[thread].owner];

	return *intern_text(&profile->strings, owner->cgroup);
}

/* Stores the first thread that has this key. */
static int find_first(struct map *numbers, uint64_t key, uint32_t thread, uint32_t *ret_first)
{
	uint64_t first = thread;
	int err = map_get(numbers, key, &first) ? 0 : map_put(numbers, key, thread);

	*ret_first = (uint32_t)first;
	return err;
}

/*
 * The number is the tid, as async-profiler's converter shows it, if no other thread has the same. What runs another
 * program from now on is another thread.
 */
int jfr_thread_add(struct jfr_pools *p, uint32_t thread)
{
	const struct profile_thread *of = &p->profile->threads.items[thread];
	bool has_id = of->tid && of->tid < OTHER_THREADS;
	uint32_t owner = thread, row = thread;

	if (has_id && (find_first(&p->thread_numbers, of->tid, thread, &owner) < 0 ||
		       find_first(&p->thread_numbers, (of->process + 1ull) << 32 | of->tid, thread, &row) < 0))
		return -ENOMEM;
	if (!is_same_thread(p->profile, row, thread))
		row = thread;
	if (vec_push(&p->thread_ids, has_id && row == owner ? of->tid : OTHER_THREADS + thread) < 0 ||
	    vec_push(&p->thread_rows, row) < 0 || vec_push(&p->thread_lasts, thread) < 0)
		return -ENOMEM;
	if (has_cgroup(p->profile, thread) || !has_cgroup(p->profile, p->thread_lasts.items[row]))
		p->thread_lasts.items[row] = thread;
	return 0;
}
