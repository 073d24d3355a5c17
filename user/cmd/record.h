/* SPDX-License-Identifier: MIT */
/* The options of a recording: set by words, or by their members, then checked and completed. */
#pragma once

#include "base/buf.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "event/options.h"

#define RECORD_FILE_MIN_BYTES (64u << 10) /* least value of --max-file */

const struct opt *record_option(const char *word); /* returns the row of a long option, or NULL */
void record_options_init(struct options *options); /* sets the defaults, and every other byte to 0 */
void record_options_release(struct options *options);
/*
 * Sets one long option, as in a configuration. `value` is not copied. Returns 0, or -EINVAL with one sentence in `why`.
 */
int record_options_set(struct options *options, const char *word, const char *value, struct buf *why);
/*
 * Call once when all that is given is set: decides what it means, and checks it. `words` may name processes or a
 * command. Returns 0, or -errno after reporting the error.
 */
int record_options_finish(struct options *options, const struct command_words *words);
/* The same for a continuous recording of the host. */
int record_options_finish_daemon(struct options *options);
/* Releases what the functions above made, for a copy of options that were not finished. */
void record_options_unfinish(struct options *options);
