/* SPDX-License-Identifier: MIT */
/* Tables of the report: what the machine's processes have used, and who ended the waits of threads. */
#pragma once

#include <stdio.h>

#include "profile/profile.h"
#include "writers/writer.h"

/*
 * Prints one row for each process of profile.usages, at most `count`, the busiest first: its mean and its largest load
 * (of one CPU), its threads, its most memory, and what it read and wrote between its first row and its last. Prints
 * nothing without usages. Returns 0 or -ENOMEM.
 */
int usage_table_print(const struct profile *profile, size_t count, FILE *out);

/*
 * Prints the threads that ended the waits of other threads, and how long these waits were, for the samples of
 * options->event: at most `count` rows, the longest waits first. Prints nothing if no stack shows who ended a wait
 * (FRAME_WAKER). Returns 0 or -ENOMEM, or what timeline_each() returns.
 */
int waits_print(const struct profile *profile, const struct writer_options *options, size_t count, FILE *out);
