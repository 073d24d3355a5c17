/* SPDX-License-Identifier: MIT */
#include "writers/shared/grouping.h"

#include <string.h>

#include "profile/attributes.h"
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
	struct buf value; /* of one of its attributes */
	struct map nodes; /* node << 32 | frame of the group -> node */
	struct vec(uint32_t) path;
	bool has_groups;
};

static bool has_groups(const struct writer *writer, const struct writer_options *options)
{
	bool has = false;

	for (size_t i = 0; i < WRITER_GROUPS; i++)
		has |= options->by[i] >= WRITER_BY_TRACE;
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

/* Sets g->value to that of the sample or, if it has none of this name, to that of its process. */
static bool find_value(struct grouping *g, const struct profile_sample *sample, const char *key, size_t key_len)
{
	const struct profile *profile = g->spans.profile;
	const struct profile_owner *owner = &profile->owners.items[profile->threads.items[sample->thread].owner];
	struct attribute found;
	BUF(name);

	buf_add(&name, key, key_len);
	buf_clear(&g->value);
	if (!attributes_find(profile_text(profile, sample->attributes), name.data, &found) &&
	    !attributes_find(profile_text(profile, owner->attributes), name.data, &found))
		return false;
	buf_add(&g->value, found.value, found.value_len);
	return true;
}

/* Of several patterns for one key, one must match. */
static bool has_attribute(struct grouping *g, const struct profile_sample *sample, const char *wanted)
{
	const struct opt_strings *all = &g->options->attributes;
	size_t key_len = strcspn(wanted, "=");

	(void)find_value(g, sample, wanted, key_len);
	for (size_t i = 0; i < all->len; i++) {
		const char *pattern = all->items[i] + key_len + 1;

		if (!strncmp(all->items[i], wanted, key_len + 1) &&
		    filter_match(&(struct opt_strings){.items = &pattern, .len = 1}, g->value.data))
			return true;
	}
	return false;
}

static bool is_wanted(struct grouping *g, const struct profile_sample *sample)
{
	const struct writer_options *options = g->options;

	for (size_t i = 0; i < options->attributes.len; i++)
		if (!has_attribute(g, sample, options->attributes.items[i]))
			return false;

	return (!options->spans.len || filter_match(&options->spans, g->span.data)) &&
	       (!options->traces_of.len || filter_match(&options->traces_of, g->trace.data));
}

static const char *group_of(struct grouping *g, const struct profile_sample *sample, const char *key)
{
	size_t len = strcspn(key, ",");

	if (!find_value(g, sample, key, len))
		buf_printf(&g->value, "[no %.*s]", (int)len, key);
	return g->value.data;
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
	if (!is_wanted(g, from))
		return false;
	for (size_t i = WRITER_GROUPS; g->has_groups && *node != UINT32_MAX && i-- > 0;) {
		if (g->options->by[i] == WRITER_BY_TRACE)
			*node = lead(g, to, *node, g->trace.len ? g->trace.data : NO_TRACE);
		else if (g->options->by[i] == WRITER_BY_SPAN)
			*node = lead(g, to, *node, g->span.len ? g->span.data : NO_SPAN);
		else if (g->options->by[i] == WRITER_BY_ATTRIBUTE)
			*node = lead(g, to, *node, group_of(g, from, g->options->by_keys[i]));
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
	struct grouping g = {.options = options, .has_groups = is_grouped,
			     .trace = BUF_NONE, .span = BUF_NONE, .value = BUF_NONE};
	int err;

	if (!is_grouped && !options->spans.len && !options->traces_of.len && !options->attributes.len)
		return 0;
	err = profile_init(ret);
	if (err < 0)
		return err;
	err = cut(&g, profile, ret);
	spans_release(&g.spans);
	buf_release(&g.trace);
	buf_release(&g.span);
	buf_release(&g.value);
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
