/* SPDX-License-Identifier: MIT */
#include "writers/shared/threads.h"

#include <errno.h>
#include <stdlib.h>

static bool has_cgroup(const struct profile *profile, uint32_t thread)
{
	const struct profile_owner *owner = &profile->owners.items[profile->threads.items[thread].owner];

	return *intern_text(&profile->strings, owner->cgroup);
}

static int add(struct threads *threads, const struct profile *profile, uint32_t thread)
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
		err = add(threads, profile, (uint32_t)threads->lasts.len);
	return err;
}

void threads_release(struct threads *threads)
{
	map_release(&threads->firsts);
	vec_release(&threads->rows);
	vec_release(&threads->lasts);
}
