/* SPDX-License-Identifier: MIT */
/* Statistics of a running session, for `duet status` and --metrics. */
#pragma once

#include <stdbool.h>

struct buf;
struct report;

/* A status_answer; `context` is a struct report. */
void stats_answer(void *context, bool for_people, struct buf *text);
