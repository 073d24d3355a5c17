/* SPDX-License-Identifier: MIT */
/*
 * One HTML file that needs no other file: page, style and script from assets.S, and a list of all events as JSON
 * (page.h). The formats flamegraph, tree and heatmap are this page, and differ in the view in which it opens. If
 * the profile has few samples, the page has each of them; a heat map of more has tables.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "writers/html/frame_list.h"
#include "writers/html/page.h"
#include "writers/writer.h"

/* Files of flamegraph/, embedded by assets.S. */
extern const char asset_page[], asset_style[], asset_script[];
extern const uint64_t asset_page_bytes, asset_style_bytes, asset_script_bytes;

/* Writes an HTML page from a template: the output of functions replaces the markers in it. */
struct page_insertion {
	const char *marker; /* "@style@" */
	int (*write)(const void *context); /* returns 0 or -errno */
};

/* After a failed write of a long part, the stream does not have the cause. */
static int put(FILE *out, const char *bytes, size_t len)
{
	return fwrite(bytes, 1, len, out) == len ? 0 : -errno;
}

/* The insertions are in the order of their markers. Returns 0 or -errno, as writer.write() does. */
static int page_write(const char *page, size_t bytes, const struct page_insertion *insertions, size_t count,
		      const void *context, FILE *out)
{
	const char *at = page, *end = page + bytes;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		size_t len = strlen(insertions[i].marker);
		const char *marker = memmem(at, (size_t)(end - at), insertions[i].marker, len);

		if (!marker)
			return -EINVAL;
		err = put(out, at, (size_t)(marker - at));
		if (!err)
			err = insertions[i].write(context);
		at = marker + len;
	}
	if (!err)
		err = put(out, at, (size_t)(end - at));
	return err ? err : writer_finish(out);
}

static const char view_heat[] = "heat";

struct file {
	const struct writer_options *options;
	FILE *out;
	struct page_parts parts;
	struct tree_diff *diff; /* of two profiles */
	bool is_dotted; /* the user asked for dots */
};

static int write_events(const struct file *file, struct json *json)
{
	const struct profile *profile = file->parts.profile;
	size_t count = profile->events.len ? profile->events.len : 1;
	struct writer_options ours = *file->options;
	int err = 0;

	for (uint32_t event = 0; !err && event < count; event++) {
		struct tree tree;

		ours.event = event;
		err = tree_build(&tree, profile, &ours);
		if (err < 0)
			return err;
		err = page_event_write(&file->parts, &tree, &ours, json);
		tree_release(&tree);
	}
	return err;
}

static int write_difference(const struct file *file, struct json *json)
{
	struct writer_options ours = *file->options;

	ours.event = file->parts.two->b.event;
	return page_event_write(&file->parts, &file->diff->tree, &ours, json);
}

static int write_profiles(const void *context)
{
	const struct file *file = context;
	struct json json = {.out = file->out};
	int err;

	json_begin(&json, "[");
	err = file->diff ? write_difference(file, &json) : write_events(file, &json);
	json_end(&json, "]");
	return err;
}

/* With names as in other formats: the page's own are for people. */
static int write_frames(const void *context)
{
	const struct file *file = context;
	struct writer_options ours = *file->options;

	if (!ours.frame_list)
		return 0;
	ours.style.dotted = file->is_dotted;
	return frame_list_write(file->parts.profile, &ours, file->out);
}

static int write_style(const void *context)
{
	fwrite(asset_style, 1, asset_style_bytes, ((const struct file *)context)->out);
	return 0;
}

static int write_script(const void *context)
{
	fwrite(asset_script, 1, asset_script_bytes, ((const struct file *)context)->out);
	return 0;
}

/* In the order of the markers in the page. */
static const struct page_insertion insertions[] = {
	{"@style@", write_style},
	{"@frames@", write_frames},
	{"@profiles@", write_profiles},
	{"@script@", write_script},
};

static int write_file(const struct file *file)
{
	return page_write(asset_page, asset_page_bytes, insertions, sizeof(insertions) / sizeof(*insertions), file,
			  file->out);
}

/* Frames that differ only in how the code ran are one frame: colours and tooltips show the difference. */
static struct writer_options style_of_page(const struct writer_options *options)
{
	struct writer_options ours = *options;

	ours.style.dotted = true;
	ours.style.annotate = false;
	return ours;
}

static int write_page(const struct profile *profile, const struct writer_options *options, const char *view, FILE *out)
{
	struct writer_options ours = style_of_page(options);
	struct file file = {.options = &ours,
			    .out = out,
			    .parts = {.profile = profile, .view = view},
			    .is_dotted = options->style.dotted};
	struct ordered ordered = {0};
	int err = 0;

	if (profile->samples.len <= TREE_LEAVES_MAX && !options->grain) {
		err = ordered_build(&ordered, profile);
		file.parts.ordered = &ordered;
	}
	ours.leaves = view == view_heat && !options->grain;
	if (!err)
		err = write_file(&file);
	ordered_release(&ordered);
	return err;
}

static int flamegraph_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	return write_page(profile, options, NULL, out);
}

static int tree_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	return write_page(profile, options, "tree", out);
}

static int heatmap_write(const struct profile *profile, const struct writer_options *options, FILE *out)
{
	return write_page(profile, options, view_heat, out);
}

static int flamegraph_write_diff(const struct writer_diff *two, const struct writer_options *options, FILE *out)
{
	struct writer_options ours = style_of_page(options);
	struct tree_diff diff;
	struct file file = {
		.options = &ours, .out = out, .diff = &diff, .parts = {.profile = two->b.profile, .two = two}};
	int err = tree_diff_build(&diff, two, &ours);

	if (err < 0)
		return err;
	file.parts.a = diff.a.items;
	err = write_file(&file);
	tree_diff_release(&diff);
	return err;
}

const struct writer writer_flamegraph = {
	.name = "flamegraph",
	.extensions = "html,htm",
	.help = "flame graph, call tree and heat map in one HTML file that opens from disk",
	.has_all_events = true,
	.write = flamegraph_write,
	.write_diff = flamegraph_write_diff,
};

const struct writer writer_tree = {
	.name = "tree",
	.extensions = "tree.html",
	.help = "the same file, which opens with the call tree; with --reverse backtraces",
	.has_all_events = true,
	.write = tree_write,
};

const struct writer writer_heatmap = {
	.name = "heatmap",
	.extensions = "heatmap.html",
	.help = "the same file, which opens with samples over time; a range opens as a flame graph",
	.has_all_events = true,
	.write = heatmap_write,
};
