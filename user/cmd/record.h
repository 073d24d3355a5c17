/* SPDX-License-Identifier: MIT */
/* The options of `duet record`, for a configuration. */
#ifndef CMD_RECORD_H
#define CMD_RECORD_H

#include "attach/attach.h"
#include "base/buf.h"
#include "base/opt.h"
#include "session/session.h"

#define RECORD_FILE_MIN_BYTES (64u << 10) /* least value of --max-file */

struct record_options;

const struct opt *record_option(const char *word); /* returns the row of a long option, or NULL */
struct record_options *record_options_new(void); /* returns the defaults, or NULL when out of memory */
void record_options_free(struct record_options *options);
/* Sets one long option. `value` is not copied. Returns 0, or -EINVAL with one sentence in `why`. */
int record_options_set(struct record_options *options, const char *word, const char *value, struct buf *why);
/*
 * Fills *session for a continuous recording of the host; `folder` is used when no option names one. *session points
 * into `options`. Returns 0, or -EINVAL after reporting the error. In both cases call record_session_release().
 */
int record_options_fill(struct record_options *options, const char *folder, struct session_options *session);
/* Lets a recording wait until it may begin. */
struct record_gate {
	/* where the one process's loaded agent listens; read after await(); name[0] is 0: an agent is attached */
	const struct attach_control *control;
	int (*await)(void *context); /* see struct session_options */
	void *context;
};

/*
 * Runs `duet record WORDS` for one process, with a gate, and with native memory as async-profiler's callers expect it.
 * Returns the exit code. For a process that does nothing else.
 */
int record_behind_gate(int argc, char **argv, const struct record_gate *gate);
void record_session_release(struct session_options *session);

#endif
