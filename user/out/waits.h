/* SPDX-License-Identifier: MIT */
/* The table of the report that says which thread ended the waits of which other one, and how long these were. */
#ifndef OUT_WAITS_H
#define OUT_WAITS_H

#include <stdio.h>

#include "out/writer.h"

/*
 * Prints it for the samples of options->event, at most `count` rows, the longest waits first; nothing if no stack tells
 * who ended a wait (FRAME_WAKER). 0 or -ENOMEM, or as timeline_each().
 */
int waits_print(const struct profile *profile, const struct writer_options *options, size_t count, FILE *out);

#endif
