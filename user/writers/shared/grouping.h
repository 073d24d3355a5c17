/* SPDX-License-Identifier: MIT */
/*
 * Writes a profile by the traces and spans that its samples worked for, and by their attributes: --by, --span,
 * --trace-id, --attr.
 */
#pragma once

#include "writers/writer.h"

/* Calls the writer with the samples that the options choose. Returns what it returns, or -errno. */
int grouping_write(const struct writer *writer, const struct profile *profile, const struct writer_options *options,
		   FILE *out);

/*
 * Makes the profile one of the samples that the options choose, for a writer that has several. Sets
 * options->is_grouped. Returns 0, or -errno with the profile unchanged.
 */
int grouping_apply(struct profile *profile, const struct writer *writer, struct writer_options *options);
