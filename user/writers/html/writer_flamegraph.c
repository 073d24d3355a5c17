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

static int write_profiles(const struct file *file)
{
	struct json json = {.out = file->out};
	struct writer_options ours = *file->options;
	int err;

	json_begin(&json, "[");
	if (file->diff) {
		ours.event = file->parts.two->b.event;
		err = page_event_write(&file->parts, &file->diff->tree, &ours, &json);
	} else {
		err = write_events(file, &json);
	}
	json_end(&json, "]");
	return err;
}

/* With names as in other formats: the page's own are for people. */
static int write_frames(const struct file *file)
{
	struct writer_options ours = *file->options;

	if (!ours.frame_list)
		return 0;
	ours.style.dotted = file->is_dotted;
	return frame_list_write(file->parts.profile, &ours, file->out);
}

/* After a failed write of a long part, the stream does not have the cause. */
static int put(FILE *out, const char *bytes, size_t len)
{
	return fwrite(bytes, 1, len, out) == len ? 0 : -errno;
}

static int write_style(const struct file *file)
{
	return put(file->out, asset_style, asset_style_bytes);
}

static int write_script(const struct file *file)
{
	return put(file->out, asset_script, asset_script_bytes);
}

/* What replaces the markers in the page, in their order there. */
static const struct {
	const char *marker;
	int (*write)(const struct file *file); /* returns 0 or -errno */
} insertions[] = {
	{"@style@", write_style},
	{"@frames@", write_frames},
	{"@profiles@", write_profiles},
	{"@script@", write_script},
};

static int write_file(const struct file *file)
{
	const char *at = asset_page, *end = asset_page + asset_page_bytes;
	int err = 0;

	for (size_t i = 0; i < sizeof(insertions) / sizeof(*insertions) && !err; i++) {
		size_t len = strlen(insertions[i].marker);
		const char *marker = memmem(at, (size_t)(end - at), insertions[i].marker, len);

		if (!marker)
			return -EINVAL;
		err = put(file->out, at, (size_t)(marker - at));
		if (!err)
			err = insertions[i].write(file);
		at = marker + len;
	}
	if (!err)
		err = put(file->out, at, (size_t)(end - at));
	return err ? err : writer_finish(file->out);
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
