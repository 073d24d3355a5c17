/* SPDX-License-Identifier: MIT */
/* Writes a profile by the traces and spans that its samples worked for: --by trace, --by span, --span, --trace-id. */
#ifndef OUT_GROUPING_H
#define OUT_GROUPING_H

#include "out/writer.h"

/* Calls the writer with the samples that the options choose. Returns what it returns, or -errno. */
int grouping_write(const struct writer *writer, const struct profile *profile, const struct writer_options *options,
		   FILE *out);

#endif
