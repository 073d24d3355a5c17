/* SPDX-License-Identifier: MIT */
/* The rows of the table in writers.c, and functions that several writers use. */
#ifndef WRITERS_WRITERS_H
#define WRITERS_WRITERS_H

#include <stdio.h>

#include "writers/writer.h"

extern const struct writer writer_col;
extern const struct writer writer_callgrind;
extern const struct writer writer_chrometrace;
extern const struct writer writer_collapsed;
extern const struct writer writer_duet;
extern const struct writer writer_firefox;
extern const struct writer writer_flamegraph;
extern const struct writer writer_flat;
extern const struct writer writer_heatmap;
extern const struct writer writer_jfr;
extern const struct writer writer_otlp;
extern const struct writer writer_otlp_json;
extern const struct writer writer_perf;
extern const struct writer writer_pprof;
extern const struct writer writer_speedscope;
extern const struct writer writer_text;
extern const struct writer writer_text_full;
extern const struct writer writer_traces;
extern const struct writer writer_tree;
extern const struct writer writer_tree_text;

/* Writes the lines of a sorted tree, "a;b;c 12". Returns 0 or -ENOMEM. */
struct tree;
int collapsed_write_stacks(const struct tree *tree, const struct writer_options *options, FILE *out);

/* After an error: forgets what is not written, and sets the position if it is not -1 and the file has one. */
void writer_rewind(FILE *out, int64_t position);

/* Appends "java 12/34 main": process, pid and tid of a thread, and its name. Not cleaned. */
void writer_thread_text(const struct profile *profile, uint32_t thread, struct buf *out);

/* Flushes the stream. Returns 0 or the -errno of the stream, which the writer returns. */
int writer_finish(FILE *out);

#endif
