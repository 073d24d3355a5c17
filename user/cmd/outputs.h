/* SPDX-License-Identifier: MIT */
/* What -f and -o say together. */
#ifndef CMD_OUTPUTS_H
#define CMD_OUTPUTS_H

#include "base/opt.h"
#include "session.h"

/*
 * Fills session->outputs, of a continuous recording (session->window_ns is set) also its folder. `formats` is a list
 * with commas, or NULL. Strings of `files` must outlive the session. 0, or -EINVAL and -ENOMEM after the user has been
 * told.
 */
int outputs_set(struct session_options *session, const struct opt_strings *files, const char *formats);
void outputs_release(struct session_options *session);

#endif
