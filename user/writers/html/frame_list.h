/* SPDX-License-Identifier: MIT */
/*
 * The frames of a flame graph as async-profiler's tools read them from its HTML files: lines of text, in a part of the
 * page that browsers do not show.
 */
#pragma once

#include <stdio.h>

#include "profile/profile.h"
#include "writers/writer.h"

/* Writes the samples of options->event. Returns 0 or -errno. */
int frame_list_write(const struct profile *profile, const struct writer_options *options, FILE *out);
