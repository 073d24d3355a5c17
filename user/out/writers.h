/* SPDX-License-Identifier: MIT */
/* The rows of the table in writers.c, and what writers share. */
#ifndef OUT_WRITERS_H
#define OUT_WRITERS_H

#include <stdio.h>

#include "out/writer.h"

extern const struct writer writer_collapsed;
extern const struct writer writer_flamegraph;
extern const struct writer writer_text;

/* What a writer returns at its end: 0, or the -errno of the stream. */
int writer_finish(FILE *out);

#endif
