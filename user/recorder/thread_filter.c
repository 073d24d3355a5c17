/* SPDX-License-Identifier: MIT */
#include "recorder/report_shape.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct filtering {
	const struct profile *profile;
	const char *text;
	struct thread_choices sorted; /* by thread, then by time */
	struct timeline kept;
};

/* Reads "N" or "N-M" and what separates it from the next one. Returns the text behind it, or NULL. */
static const char *read_range(const char *text, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	*ret_first = *ret_last = strtoul(text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return NULL;
		*ret_last = strtoul(end + 1, &end, 10);
	}
	if (*end && *end != ';')
		return NULL;
	return *end ? end + 1 : end;
}

bool thread_filter_is_valid(const char *text)
{
	unsigned long first, last;

	while (text && *text)
		text = read_range(text, &first, &last);
	return text != NULL;
}

static bool has_thread(const char *text, uint32_t tid)
{
	unsigned long first, last;

	while (text && *text) {
		text = read_range(text, &first, &last);
		if (text && tid >= first && tid <= last)
			return true;
	}
	return false;
}

int thread_filter_choose(struct thread_choices *choices, const char *text)
{
	struct thread_choice choice = {.realtime_ns = clock_realtime_ns(), .is_added = *text == '+'};
	unsigned long tid;
	char *end;

	if ((*text != '+' && *text != '-') || !isdigit((unsigned char)text[1]))
		return -EINVAL;
	tid = strtoul(text + 1, &end, 10);
	if (*end || tid > INT_MAX)
		return -EINVAL;
	if (choices->all.len == THREAD_CHOICES_MAX)
		return -ENOSPC;
	choice.tid = (uint32_t)tid;
	return vec_push(&choices->all, choice);
}

static int compare_choices(const void *a, const void *b)
{
	const struct thread_choice *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->realtime_ns > y->realtime_ns) - (x->realtime_ns < y->realtime_ns);
}

static int sort_choices(struct filtering *filtering, const struct thread_choices *choices)
{
	for (size_t i = 0; i < choices->all.len; i++)
		if (vec_push(&filtering->sorted.all, choices->all.items[i]) < 0)
			return -ENOMEM;
	if (choices->all.len)
		qsort(filtering->sorted.all.items, choices->all.len, sizeof(struct thread_choice), compare_choices);
	return 0;
}

/* The thread's last choice until then counts. */
static bool was_added(const struct thread_choices *sorted, uint32_t tid, uint64_t realtime_ns)
{
	const struct thread_choice then = {.tid = tid, .realtime_ns = realtime_ns};
	const struct thread_choice *all = sorted->all.items;
	size_t low = 0, high = sorted->all.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_choices(&all[middle], &then) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && all[low - 1].tid == tid && all[low - 1].is_added;
}

static bool is_chosen(const struct filtering *filtering, const struct profile_sample *sample)
{
	uint32_t tid = filtering->profile->threads.items[sample->thread].tid;

	return *filtering->text ? has_thread(filtering->text, tid)
				: was_added(&filtering->sorted, tid, sample->time_ns);
}

static int keep(void *context, const struct profile_sample *sample)
{
	struct filtering *filtering = context;

	if (!strcmp(profile_event_name(filtering->profile, sample->event), "wall") && !is_chosen(filtering, sample))
		return 0;
	return timeline_add(&filtering->kept, sample);
}

int thread_filter_apply(struct profile *profile, const char *text, const struct thread_choices *choices)
{
	struct filtering filtering = {.profile = profile, .text = text};
	int err = sort_choices(&filtering, choices);

	if (!err)
		err = timeline_remake(&profile->samples, &filtering.kept, keep, &filtering);
	vec_release(&filtering.sorted.all);
	return err;
}
