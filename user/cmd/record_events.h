/* SPDX-License-Identifier: MIT */
/* Which events `duet record` samples: -e, -i, --freq, --all and the options that are made of the table of events. */
#ifndef CMD_RECORD_EVENTS_H
#define CMD_RECORD_EVENTS_H

struct record_options;
struct session_options;

/* Fills session->events, and session->engine where -e names one. Returns 0, or -EINVAL after reporting the error. */
int record_events_set(struct session_options *session, const struct record_options *options);

#endif
