/* SPDX-License-Identifier: MIT */
/* async-profiler's filter: of wall's samples, those of some threads only. Other events are not filtered. */
#ifndef ASPROF_THREAD_FILTER_H
#define ASPROF_THREAD_FILTER_H

#include <stdbool.h>

#include "profile/profile.h"

/* "120-127;132": thread ids and ranges of them; "" has none. */
bool thread_filter_is_valid(const char *text);
/* Drops the samples of the event wall of other threads. Returns 0 or -errno. */
int thread_filter_apply(struct profile *profile, const char *text);

#endif
