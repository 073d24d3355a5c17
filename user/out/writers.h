/* SPDX-License-Identifier: MIT */
/* The rows of the table in writers.c, and what writers share. */
#ifndef OUT_WRITERS_H
#define OUT_WRITERS_H

#include <stdio.h>

#include "out/writer.h"

extern const struct writer writer_col;
extern const struct writer writer_collapsed;
extern const struct writer writer_flamegraph;
extern const struct writer writer_text;

/* The lines of a sorted tree, "a;b;c 12". 0 or -ENOMEM. */
struct tree;
int collapsed_write_stacks(const struct tree *tree, const struct writer_options *options, FILE *out);

/* What a writer returns at its end: 0, or the -errno of the stream. */
int writer_finish(FILE *out);

#endif
