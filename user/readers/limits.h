/* SPDX-License-Identifier: MIT */
/*
 * What a file may become. Rows refer to texts, and stacks to frames: a few bytes can stand for gigabytes of names and
 * stacks. The limits grow with the bytes of the file as they are stored; honest files are far below them.
 */
#pragma once

#include "readers/reader.h"

/* Sets the limits of source->profile to what the bytes allow that were read so far. */
void limits_set(const struct reader_source *source);
/* Call at the end. Returns 0, or -errno with one sentence in `why` if outputs of the profile would become too large. */
int limits_check(const struct reader_source *source, const struct profile *profile, struct buf *why);
