/* SPDX-License-Identifier: MIT */
/* The table of the report with the threads that ended the waits of other threads, and how long these waits were. */
#ifndef WRITERS_TEXT_WAITS_H
#define WRITERS_TEXT_WAITS_H

#include <stdio.h>

#include "writers/writer.h"

/*
 * Prints the table for the samples of options->event, at most `count` rows, the longest waits first. Prints nothing if
 * no stack shows who ended a wait (FRAME_WAKER). Returns 0 or -ENOMEM, or what timeline_each() returns.
 */
int waits_print(const struct profile *profile, const struct writer_options *options, size_t count, FILE *out);

#endif
