/* SPDX-License-Identifier: MIT */
/*
 * The commands `asprof` and `jfrconv`: async-profiler's command lines. Samples, walks and files are those of
 * `duet record` and `duet convert`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Returns the exit code: 0; 1 for a command line or process that is none; DUET_ANSWER_NOT_UNDERSTOOD and
 * DUET_ANSWER_REFUSED as async-profiler has them.
 */
int asprof_main(int argc, char **argv);
/* The converter. Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
int jfrconv_main(int argc, char **argv);

/* ---- the command line of `asprof`, turned into the arguments that a recorder takes: options.c ---- */

struct asprof_options {
	const char *action; /* "collect" by default */
	const char *target; /* a pid, "jps" or the name of an application; NULL: none */
	char **words; /* words after the action, for actions that pass them on: jcmd … */
	int word_count;
	bool help, version;
	uint64_t duration_s; /* -d */
	const char *file; /* -f; NULL: stdout */
	struct buf format; /* ",word,word=value": sent with start and with stop */
	struct buf params; /* the same, sent with start only */
};

/* Returns 0, or -EINVAL with the message for the user in `why`. Call asprof_options_release() in both cases. */
int asprof_options_parse(struct asprof_options *ret, int argc, char **argv, struct buf *why);
void asprof_options_release(struct asprof_options *options);
extern const char asprof_usage[];
