/* SPDX-License-Identifier: MIT */
#include "writers/shared/grouping.h"

#include "profile/merge.h"
#include "profile/timeline.h"
#include "writers/shared/filter.h"
#include "writers/shared/spans.h"

#define NO_TRACE "[no trace]"
#define NO_SPAN "[no span]"

/* Gives each sample of a copy of the profile the leading frames that path.c finds there. */
struct grouping {
	const struct writer_options *options;
	struct spans spans;
	struct buf trace, span; /* of the sample; empty: it has none */
	struct map nodes; /* node << 32 | frame of the group -> node */
	struct vec(uint32_t) path;
	bool has_groups;
};

static bool has_groups(const struct writer *writer, const struct writer_options *options)
{
	bool has = false;

	for (size_t i = 0; i < WRITER_GROUPS; i++)
		has |= options->by[i] == WRITER_BY_TRACE || options->by[i] == WRITER_BY_SPAN;
	return has && writer != &writer_duet; /* that file has all of it anyway */
}

static void describe(struct grouping *g, const struct profile_sample *sample)
{
	char id[TRACE_ID_DIGITS + 1];

	buf_clear(&g->trace);
	buf_clear(&g->span);
	spans_name(&g->spans, sample, &g->span);
	if (!sample->trace_high && !sample->trace_low)
		return;
	trace_id_text(sample, id);
	buf_add_str(&g->trace, id);
}

static bool is_wanted(const struct grouping *g)
{
	const struct writer_options *options = g->options;

	return (!options->spans.len || filter_match(&options->spans, g->span.data)) &&
	       (!options->traces_of.len || filter_match(&options->traces_of, g->trace.data));
}

/* Puts a frame at the root of the stack that ends at this node. Returns the new node, or UINT32_MAX. */
static uint32_t lead(struct grouping *g, struct profile *to, uint32_t node, const char *text)
{
	const struct frame frame = {.kind = FRAME_SPAN, .name = intern_str(&to->strings, text), .bci = -1};
	uint32_t index = profile_frame(to, &frame);
	uint64_t key = (uint64_t)node << 32 | index, known;

	if (index == UINT32_MAX || map_get(&g->nodes, key, &known))
		return index == UINT32_MAX ? index : (uint32_t)known;
	vec_clear(&g->path);
	for (uint32_t at = node; at; at = to->nodes.items[at].parent)
		if (vec_push(&g->path, to->nodes.items[at].frame) < 0)
			return UINT32_MAX;
	known = profile_child(to, 0, index);
	for (size_t i = g->path.len; known != UINT32_MAX && i-- > 0;)
		known = profile_child(to, (uint32_t)known, g->path.items[i]);
	(void)map_put(&g->nodes, key, known); /* may fail: it is made again then */
	return (uint32_t)known;
}

/* See struct profile_part. The group that is outermost gets its frame last. */
static bool place(void *context, struct profile *to, const struct profile_sample *from, uint32_t *node)
{
	struct grouping *g = context;

	describe(g, from);
	if (!is_wanted(g))
		return false;
	for (size_t i = WRITER_GROUPS; g->has_groups && *node != UINT32_MAX && i-- > 0;) {
		if (g->options->by[i] == WRITER_BY_TRACE)
			*node = lead(g, to, *node, g->trace.len ? g->trace.data : NO_TRACE);
		else if (g->options->by[i] == WRITER_BY_SPAN)
			*node = lead(g, to, *node, g->span.len ? g->span.data : NO_SPAN);
	}
	return true;
}

static int cut(struct grouping *g, const struct profile *from, struct profile *to)
{
	const struct profile_part part = {
		.until_ns = UINT64_MAX,
		.event = UINT32_MAX,
		.also = UINT32_MAX,
		.place = place,
		.context = g,
	};
	BUF(why);
	int err = spans_open(&g->spans, from);

	if (!err)
		err = profile_cut(to, from, &part, &why);
	return err;
}

/*
 * Makes a profile of the samples that the options choose, if they choose any. Returns 1, or 0 if they do not, or
 * -errno; then there is nothing to release.
 */
static int group(const struct profile *profile, const struct writer *writer, struct writer_options *options,
		 struct profile *ret)
{
	bool is_grouped = has_groups(writer, options);
	struct grouping g = {.options = options, .has_groups = is_grouped, .trace = BUF_NONE, .span = BUF_NONE};
	int err;

	if (!is_grouped && !options->spans.len && !options->traces_of.len)
		return 0;
	err = profile_init(ret);
	if (err < 0)
		return err;
	err = cut(&g, profile, ret);
	spans_release(&g.spans);
	buf_release(&g.trace);
	buf_release(&g.span);
	map_release(&g.nodes);
	vec_release(&g.path);
	if (err) {
		profile_release(ret);
		return err;
	}
	if (options->passed)
		options->passed->is_spanless = profile->samples.len && !ret->samples.len;
	options->is_grouped = is_grouped;
	return 1;
}

int grouping_write(const struct writer *writer, const struct profile *profile, const struct writer_options *options,
		   FILE *out)
{
	struct writer_options ours = *options;
	struct profile grouped;
	int err = group(profile, writer, &ours, &grouped);

	if (err < 0)
		return err;
	if (!err)
		return writer->write(profile, options, out);
	err = writer->write(&grouped, &ours, out);
	profile_release(&grouped);
	return err;
}

int grouping_apply(struct profile *profile, const struct writer *writer, struct writer_options *options)
{
	struct profile grouped;
	int err = group(profile, writer, options, &grouped);

	if (err <= 0)
		return err;
	profile_release(profile);
	*profile = grouped;
	return 0;
}
