/* SPDX-License-Identifier: MIT */
/* The difference of two profiles as a text: what has grown most comes first. */
#pragma once

#include <stdio.h>

#include "writers/writer.h"

/* As writer.write_diff(). The weights are compared as they are, also with two->normalize: growth is no share. */
int text_diff_write(const struct writer_diff *two, const struct writer_options *options, FILE *out);
