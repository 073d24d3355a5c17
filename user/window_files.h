/* SPDX-License-Identifier: MIT */
/*
 * The folder of a continuous recording: profile_<UTC end>.<ext> for each window and format, last_profile.<ext> (of HTML
 * last_flamegraph.html) that point to the newest, and how long the older ones stay. Nothing is ever removed that duet
 * has not named.
 */
#ifndef WINDOW_FILES_H
#define WINDOW_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/vec.h"
#include "out/writer.h"

struct window_files {
	const char *folder;
	uint64_t keep_files; /* these three: 0 = no limit */
	uint64_t keep_age_ns;
	uint64_t keep_bytes;
	struct io_access access; /* to the files; a group also gets into the folder */
};

/*
 * Makes the folder where only it is missing, and tries whether files can be made there; removes what an earlier writer
 * could not finish. 0 or -errno.
 */
int window_files_open(const struct window_files *files);
/*
 * Writes the profile, whose window ended then, in each format. Each file appears complete, then its link is moved to
 * it, then older ones go; of these the newest window's are no part, whatever the limits say. 0 or the first -errno:
 * then what could be written is there.
 */
int window_files_write(const struct window_files *files, const struct profile *profile,
		       const struct writer_options *style, const struct writer *const *formats, size_t count,
		       uint64_t end_realtime_ns);
/* Removes what is over the limits, oldest first; called by window_files_write(). 0 or -errno. */
int window_files_rotate(const struct window_files *files, const char *newest);
/* Is it a name that window_files_write() gives? */
bool window_files_named(const char *name);

#endif
