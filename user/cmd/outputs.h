/* SPDX-License-Identifier: MIT */
/* The outputs that -f and -o ask for. */
#pragma once

#include "base/opt.h"
#include "cmd/work.h"
#include "event/options.h"

/*
 * Fills options->outputs from -f and -o, and for a continuous recording (options->window_ns is set) also the folder's
 * name, if it is given. Returns 0, or -EINVAL or -ENOMEM after reporting the error.
 */
int outputs_set(struct options *options);
/* The writer of "NAME" or "NAME=N", see writer_by_word(). NULL after reporting the error. */
const struct writer *outputs_find_writer(const char *word, struct writer_options *style);
/*
 * Refuses the name of a picture and, where the name chooses the format, an ending that is nearly one of a format.
 * Returns 0, or -EINVAL after reporting the error.
 */
int outputs_check_name(const char *path, bool has_format);
/* Reports what the format cannot hold, and how many stacks were cut, if any: see struct writer_options. */
void outputs_report_lacks(const struct writer *writer, const struct profile *profile, uint64_t cut);

/* An output of the work (cmd/work.h), which its parent opens, and gives its name at the end. */
struct output {
	struct io_output io;
	struct buf name; /* for messages */
};

/*
 * Opens the work's output, for whoever may read the profile; with `event`, the one of that name beside it. Returns 0,
 * or -errno after reporting the error.
 */
int outputs_open(struct output *ret, const struct work *work, const char *event, bool is_private);
/*
 * Ends an output after a writer that returned `err`. With `style`, refuses one of which its filters have left nothing.
 * Returns 0, or -errno after reporting the error.
 */
int outputs_end(struct output *output, const struct writer_options *style, int err);
void outputs_release(struct options *options);
/* Finds a group of /etc/group, and looks nowhere else. Returns 0, or -EINVAL after reporting the error. */
int outputs_find_group(const char *name, gid_t *ret_gid);
