/* SPDX-License-Identifier: MIT */
/* Which samples a report has: those between two functions, and of chosen threads. */
#include "recorder/report_shape.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NONE UINT32_MAX

struct mark {
	uint64_t time_ns;
	uint32_t thread;
	bool is_begin;
};

struct window {
	uint64_t end_ns; /* first, for vec_up_to(); UINT64_MAX: it has not ended */
	uint64_t begin_ns;
	uint32_t thread; /* the one that ended it */
};

struct marks {
	struct profile *profile;
	uint32_t begin, end; /* indices of events; NONE: the recording has no such mark */
	bool keeps_all;
	struct vec(struct mark) hits;
	struct vec(struct window) windows;
	struct timeline kept;
};

/*
 * A function of C++ is named A::b, without its parameters. Its symbol begins with _ZN, the names with their lengths,
 * and E (Itanium C++ ABI, 5.1.4).
 */
void begin_end_event(const char *function, struct buf *ret_event)
{
	size_t length;

	buf_add_str(ret_event, "uprobe:*:");
	if (!strstr(function, "::"))
		return buf_add_str(ret_event, function);
	buf_add_str(ret_event, "_ZN");
	for (; *function; function += length + (function[length] ? 2 : 0)) {
		const char *next = strstr(function, "::");

		length = next ? (size_t)(next - function) : strlen(function);
		buf_printf(ret_event, "%zu%.*s", length, (int)length, function);
	}
	buf_add_str(ret_event, "E*");
}

/* Returns the index of the event that begin_end_event() has made. */
static uint32_t find_event(const struct profile *profile, const char *function)
{
	uint32_t found = NONE;
	BUF(name);

	if (!function)
		return NONE;
	begin_end_event(function, &name);
	for (uint32_t i = 0; i < profile->events.len; i++)
		if (!strcmp(profile_event_name(profile, i), name.data))
			found = i;
	return found;
}

static int take_hit(void *context, const struct profile_sample *sample)
{
	struct marks *marks = context;
	const struct mark hit = {sample->time_ns, sample->thread, sample->event == marks->begin};

	return sample->event == marks->begin || sample->event == marks->end ? vec_push(&marks->hits, hit) : 0;
}

/* Without a function for the begin, the window is open from the start. */
static int make_windows(struct marks *marks)
{
	struct window open = {.begin_ns = 0, .end_ns = UINT64_MAX};
	bool is_open = marks->begin == NONE;
	int err = 0;

	if (marks->hits.len)
		qsort(marks->hits.items, marks->hits.len, sizeof(*marks->hits.items), vec_by_u64);
	for (size_t i = 0; !err && i < marks->hits.len; i++) {
		const struct mark *hit = &marks->hits.items[i];

		if (hit->is_begin && !is_open) {
			open.begin_ns = hit->time_ns;
			is_open = true;
		} else if (!hit->is_begin && is_open) {
			err = vec_push(&marks->windows, (struct window){hit->time_ns, open.begin_ns, hit->thread});
			is_open = false;
		}
	}
	if (!err && is_open)
		err = vec_push(&marks->windows, open);
	return err;
}

/* They are in the order of time, and do not overlap. */
static bool is_inside(const struct marks *marks, uint64_t time_ns)
{
	size_t before = time_ns ? vec_up_to(&marks->windows, time_ns - 1) : 0;

	return before < marks->windows.len && marks->windows.items[before].begin_ns <= time_ns;
}

static int keep_inside(void *context, const struct profile_sample *sample)
{
	struct marks *marks = context;

	if (sample->event == marks->begin || sample->event == marks->end)
		return 0;
	return marks->keeps_all || is_inside(marks, sample->time_ns) ? timeline_add(&marks->kept, sample) : 0;
}

static int add_windows(struct marks *marks, uint32_t event)
{
	int err = 0;

	for (size_t i = 0; !err && i < marks->windows.len; i++) {
		const struct window *window = &marks->windows.items[i];
		const struct profile_sample sample = {
			.time_ns = window->end_ns,
			.weight = window->end_ns - window->begin_ns,
			.thread = window->thread,
			.count = 1,
			.event = event,
		};

		if (window->begin_ns && window->end_ns != UINT64_MAX)
			err = timeline_add(&marks->profile->samples, &sample);
	}
	return err;
}

/* The marks are the last events. The first of them becomes the windows. */
static int replace_events(struct marks *marks, bool windows)
{
	struct profile *profile = marks->profile;
	uint32_t first = marks->begin < marks->end ? marks->begin : marks->end;

	profile->events.len = first;
	if (!windows)
		return 0;
	profile->events.items[first] = (struct profile_event){
		.name = intern_str(&profile->strings, "window"), .unit = PROFILE_NS, .interval = 1};
	profile->events.len++;
	return add_windows(marks, first);
}

int begin_end_apply(struct profile *profile, const struct asprof_arguments *begun, bool windows)
{
	struct marks marks = {
		.profile = profile,
		.begin = find_event(profile, begun->begin),
		.end = find_event(profile, begun->end),
		.keeps_all = begun->nostop,
	};
	int err;

	if (marks.begin == NONE && marks.end == NONE)
		return 0;
	err = timeline_each(&profile->samples, take_hit, &marks);
	if (!err)
		err = make_windows(&marks);
	if (!err)
		err = timeline_remake(&profile->samples, &marks.kept, keep_inside, &marks);
	if (!err)
		err = replace_events(&marks, windows);
	vec_release(&marks.hits);
	vec_release(&marks.windows);
	return err;
}

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
	size_t count = vec_count_by(all, sorted->all.len, sizeof(*all), &then, compare_choices);

	return count && all[count - 1].tid == tid && all[count - 1].is_added;
}

static bool is_chosen(const struct filtering *filtering, const struct profile_sample *sample)
{
	uint32_t tid = filtering->profile->threads.items[sample->thread].tid;

	return *filtering->text ? has_thread(filtering->text, tid)
				: was_added(&filtering->sorted, tid, sample->time_ns);
}

static int keep_chosen(void *context, const struct profile_sample *sample)
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
		err = timeline_remake(&profile->samples, &filtering.kept, keep_chosen, &filtering);
	vec_release(&filtering.sorted.all);
	return err;
}
