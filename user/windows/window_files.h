/* SPDX-License-Identifier: MIT */
/*
 * The folder of a continuous recording. For each window and format it has a file profile_<UTC end>.<ext>; the link
 * last_profile.<ext> (for HTML last_flamegraph.html) points to the newest, and index.html lists all. Limits say how
 * long older files stay. duet removes only files with names that it gives itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "event/options.h"

/*
 * Makes the folder if its parent exists, checks that files can be made in it, and removes unfinished files of killed
 * writers. A child does so. Returns 0 or -errno: -ETIMEDOUT when the folder's file system does not answer within 10 s.
 */
int window_files_open(const struct window_files *files);
/*
 * Writes the profile of the window that ended at end_realtime_ns, in the format of each output. Each file appears when
 * it is complete; then its link is moved to it. At the end older files over the limits are removed, but never those of
 * this window. Returns 0 or the first -errno; after an error, all files that could be written exist.
 */
int window_files_write(const struct window_files *files, const struct profile *profile,
		       const struct writer_options *style, const struct session_output *outputs, size_t count,
		       uint64_t end_realtime_ns);
