/* SPDX-License-Identifier: MIT */
/* Which events `duet record` samples: -e, -i, --freq, --all and the options that are made of the table of events. */
#pragma once

struct options;

/* Fills options->events, and options->engine where -e names one. Returns 0, or -EINVAL after reporting the error. */
int record_events_set(struct options *options);
