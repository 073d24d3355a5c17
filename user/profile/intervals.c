/* SPDX-License-Identifier: MIT */
#include "profile/intervals.h"

#include <stdlib.h>
#include <string.h>

static bool has_tag(const struct profile *profile, uint32_t node, const char *tag)
{
	const struct frame *frame = profile_leaf(profile, node);

	return frame && frame->name && !strcmp(profile_text(profile, frame->name), tag);
}

/* A sample of a span or call is taken at its end. One call of a trace may stand for several. */
static int add(void *context, const struct profile_sample *sample)
{
	struct intervals *intervals = context;
	const struct profile *profile = intervals->profile;
	const struct profile_event *event = &profile->events.items[sample->event];
	const char *name = profile_text(profile, event->name);
	bool is_span = !strcmp(name, "span"), is_call = !strncmp(name, "trace", strlen("trace"));
	uint64_t length_ns = is_call && event->interval ? sample->weight / event->interval : sample->weight;
	struct interval interval = {
		.thread = profile_thread_key(profile, sample->thread),
		.from_ns = sample->time_ns > length_ns ? sample->time_ns - length_ns : 0,
		.until_ns = sample->time_ns,
	};

	if (event->unit != PROFILE_NS || !(is_span || is_call))
		return 0;
	intervals->met++;
	if (length_ns < intervals->least_ns ||
	    (intervals->tag && !(is_span && has_tag(profile, sample->node, intervals->tag))))
		return 0;
	return vec_push(&intervals->items, interval);
}

static int compare(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return vec_order(x->thread, y->thread) ?: vec_order(x->from_ns, y->from_ns);
}

/* Makes one of those that overlap. */
static void join(struct intervals *intervals)
{
	struct interval *items = intervals->items.items;
	size_t count = 0;

	for (size_t i = 0; i < intervals->items.len; i++) {
		struct interval *last = count ? &items[count - 1] : NULL;

		if (!last || last->thread != items[i].thread || last->until_ns < items[i].from_ns)
			items[count++] = items[i];
		else if (last->until_ns < items[i].until_ns)
			last->until_ns = items[i].until_ns;
	}
	intervals->items.len = count;
}

int intervals_find(struct intervals *intervals)
{
	int err = timeline_each(&intervals->profile->samples, add, intervals);

	if (err || !intervals->items.len)
		return err;
	qsort(intervals->items.items, intervals->items.len, sizeof(*intervals->items.items), compare);
	join(intervals);
	return 0;
}

void intervals_release(struct intervals *intervals)
{
	vec_release(&intervals->items);
}

bool intervals_has(const struct intervals *intervals, const struct profile_sample *sample)
{
	const struct interval *items = intervals->items.items;
	struct interval at = {.thread = profile_thread_key(intervals->profile, sample->thread),
			      .from_ns = sample->time_ns};
	size_t count = vec_count_by(items, intervals->items.len, sizeof(*items), &at, compare);

	return count && items[count - 1].thread == at.thread && sample->time_ns <= items[count - 1].until_ns;
}
