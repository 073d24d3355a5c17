/* SPDX-License-Identifier: MIT */
/* The options of a recording: set by words, or by their members, then checked and completed. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "event/options.h"

#define RECORD_FILE_MIN_BYTES (64u << 10) /* least value of --max-file */

const struct opt *record_option(const char *word); /* returns the row of a long option, or NULL */
void record_options_init(struct options *options); /* sets the defaults, and every other byte to 0 */
void record_options_release(struct options *options);
/* Sets a long option, as in a configuration. `value` is not copied. Returns 0, or -EINVAL with a sentence in `why`. */
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

/* ---- the options as given on the command line or in a configuration: record_rows.c ---- */

extern const struct opt record_rows[];

enum record_without_bpf {
	RECORD_REFUSED, /* no other engine is used */
	RECORD_UNASKED, /* another one is refused if it is named, but takes the place of BPF where that cannot run */
	RECORD_LESS, /* another one is used, and leaves it out */
};

/* An option that only the bpf engine has. */
struct record_of_bpf {
	const char *word;
	size_t offset, bytes; /* of its member, which is zero if it is not given */
	enum record_without_bpf without;
	const char *why; /* the rest of the sentence about an engine, which is its %s */
};
extern const struct record_of_bpf record_of_bpf[]; /* the last row has no word */

int record_cpu(void *field, const char *value, struct buf *why); /* a parser: [uint32_t] 1 + the number of a CPU */

/* ---- whom `duet record` profiles: record_targets.c ---- */

/* Returns 0, or -errno after reporting the error. */
int record_targets_set(struct options *options, const struct command_words *words);
/* Returns true after reporting that a command was given without -- in front of it. */
bool record_targets_lack_dashes(const struct command_words *words);
bool record_targets_has(const char *name); /* true if a JVM runs a program of this name */

/* Fills options->events, and options->engine where -e names one. Returns 0, or -EINVAL after reporting the error. */
int record_events_set(struct options *options);
