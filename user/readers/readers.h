/* SPDX-License-Identifier: MIT */
/* The rows of the table in readers.c. */
#ifndef READERS_READERS_H
#define READERS_READERS_H

#include "readers/reader.h"

extern const struct reader reader_collapsed;
extern const struct reader reader_duet;
extern const struct reader reader_html;
extern const struct reader reader_jfr;
extern const struct reader reader_perf;
extern const struct reader reader_otlp;
extern const struct reader reader_pprof;

#endif
