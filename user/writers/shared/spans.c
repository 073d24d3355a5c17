/* SPDX-License-Identifier: MIT */
#include "writers/shared/spans.h"

#include <stdlib.h>
#include <string.h>

#include "profile/timeline.h"

/* Several virtual threads may share a row, and all have one tid: what one reports is not the others'. */
static bool is_one_thread(const struct profile *profile, uint32_t thread)
{
	return profile->threads.items[thread].tid != PROFILE_VIRTUAL || profile_virtual_id(profile, thread);
}

static int add_time(void *context, const struct profile_sample *sample)
{
	struct spans *spans = context;
	const struct profile *profile = spans->profile;
	const struct frame *leaf = profile_leaf(profile, sample->node);

	if (sample->event != spans->event || sample->count != 1 || !is_one_thread(profile, sample->thread))
		return 0;
	return vec_push(&spans->times,
			(struct span_time){
				.thread = profile_thread_key(profile, sample->thread),
				.begin_ns = sample->time_ns > sample->weight ? sample->time_ns - sample->weight : 0,
				.end_ns = sample->time_ns,
				.tag = leaf ? leaf->name : 0,
				.is_span = true,
			});
}

/* By thread and beginning; of those that begin together, the longest is outside. */
static int compare_times(const void *a, const void *b)
{
	const struct span_time *x = a, *y = b;

	return vec_order(x->thread, y->thread) ?: vec_order(x->begin_ns, y->begin_ns) ?:
	       vec_order(y->end_ns, x->end_ns);
}

/* What is cut into pieces: the spans that have begun, the innermost one last. */
struct cutting {
	struct vec(struct span_time) open, pieces;
};

static int put_piece(struct cutting *cut, const struct span_time *of, uint64_t begin_ns, bool is_span)
{
	struct span_time piece = {.thread = of->thread, .begin_ns = begin_ns, .is_span = is_span};
	struct span_time *last = cut->pieces.len ? &cut->pieces.items[cut->pieces.len - 1] : NULL;

	if (is_span)
		piece.tag = of->tag;
	if (last && last->thread == of->thread && last->begin_ns == begin_ns) {
		*last = piece;
		return 0;
	}
	return vec_push(&cut->pieces, piece);
}

/* Ends the open spans that end before this time. What is outside of them goes on. */
static int close_until(struct cutting *cut, uint64_t until_ns)
{
	int err = 0;

	while (!err && cut->open.len && cut->open.items[cut->open.len - 1].end_ns < until_ns) {
		struct span_time ended = cut->open.items[--cut->open.len];

		while (cut->open.len && cut->open.items[cut->open.len - 1].end_ns <= ended.end_ns)
			cut->open.len--;
		err = cut->open.len ? put_piece(cut, &cut->open.items[cut->open.len - 1], ended.end_ns + 1, true)
				    : put_piece(cut, &ended, ended.end_ns + 1, false);
	}
	return err;
}

static int cut_into_pieces(struct cutting *cut, const struct spans *spans)
{
	int err = 0;

	for (size_t i = 0; !err && i < spans->times.len; i++) {
		const struct span_time *next = &spans->times.items[i];
		bool is_other = cut->open.len && cut->open.items[0].thread != next->thread;

		err = close_until(cut, is_other ? UINT64_MAX : next->begin_ns);
		if (is_other)
			vec_clear(&cut->open);
		if (!err)
			err = put_piece(cut, next, next->begin_ns, true);
		if (!err)
			err = vec_push(&cut->open, *next);
	}
	return err ? err : close_until(cut, UINT64_MAX);
}

static int flatten(struct spans *spans)
{
	struct cutting cut = {0};
	int err;

	if (spans->times.len)
		qsort(spans->times.items, spans->times.len, sizeof(*spans->times.items), compare_times);
	err = cut_into_pieces(&cut, spans);
	vec_release(&cut.open);
	vec_release(&spans->times);
	spans->times.items = cut.pieces.items;
	spans->times.len = cut.pieces.len;
	spans->times.size = cut.pieces.size;
	return err;
}

int spans_open(struct spans *spans, const struct profile *profile)
{
	int err = 0;

	*spans = (struct spans){.profile = profile, .event = UINT32_MAX};
	for (uint32_t i = 0; i < profile->events.len; i++)
		if (!strcmp(profile_event_name(profile, i), "span") &&
		    profile->events.items[i].unit == PROFILE_NS)
			spans->event = i;
	if (spans->event != UINT32_MAX)
		err = timeline_each(&profile->samples, add_time, spans);
	return err ? err : flatten(spans);
}

void spans_release(struct spans *spans)
{
	vec_release(&spans->times);
}

/* The last piece that begins before or at this time. */
static const struct span_time *find(const struct spans *spans, uint64_t thread, uint64_t time_ns)
{
	const struct span_time *pieces = spans->times.items, at = {.thread = thread, .begin_ns = time_ns};
	size_t count = vec_count_by(pieces, spans->times.len, sizeof(*pieces), &at, compare_times);

	return count && pieces[count - 1].thread == thread ? &pieces[count - 1] : NULL;
}

const char *spans_tag(const struct spans *spans, const struct profile_sample *sample)
{
	const struct profile *profile = spans->profile;
	const struct span_time *piece;

	if (!spans->times.len || sample->event == spans->event || !is_one_thread(profile, sample->thread))
		return NULL;
	piece = find(spans, profile_thread_key(profile, sample->thread), sample->time_ns);
	return piece && piece->is_span ? profile_text(profile, piece->tag) : NULL;
}

void spans_name(const struct spans *spans, const struct profile_sample *sample, struct buf *out)
{
	const char *tag = spans_tag(spans, sample);
	char id[SPAN_ID_DIGITS + 1];

	if (tag) {
		buf_add_str(out, *tag ? tag : "[no tag]");
	} else if (sample->span) {
		span_id_text(sample, id);
		buf_add_str(out, id);
	}
}
