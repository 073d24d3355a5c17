/* SPDX-License-Identifier: MIT */
/* The options of `duet record`, which a configuration has too. */
#ifndef CMD_RECORD_H
#define CMD_RECORD_H

#include "base/buf.h"
#include "base/opt.h"
#include "session.h"

struct record_options;

const struct opt *record_option(const char *word); /* the row of a long option; NULL when there is none */
struct record_options *record_options_new(void); /* the defaults; NULL when out of memory */
void record_options_free(struct record_options *options);
/* One long option. `value` is not copied. 0, or -EINVAL with one sentence in `why`. */
int record_options_set(struct record_options *options, const char *word, const char *value, struct buf *why);
/*
 * For a continuous recording of the host, into `folder` when no option says where. The session's options point into
 * these. 0, or -EINVAL after the user has been told; in both cases record_session_release().
 */
int record_options_fill(struct record_options *options, const char *folder, struct session_options *session);
void record_session_release(struct session_options *session);

#endif
