/* SPDX-License-Identifier: MIT */
/*
 * The folder of a continuous recording. For each window and format it has a file profile_<UTC end>.<ext>; the link
 * last_profile.<ext> (for HTML last_flamegraph.html) points to the newest, and index.html lists all. Limits say how
 * long older files stay. duet removes only files of its user with names that it gives
 * itself.
 */
#pragma once

#include "event/options.h"

#define WINDOW_NAME_BYTES 128
#define WINDOW_PREFIX "profile_"
#define WINDOW_FIRST_COLON                                                                                             \
	(sizeof(WINDOW_PREFIX) - 1 + sizeof("dddd-dd-ddTdd") - 1) /* the other is three bytes later */

/* A window in the folder, as the name of its file says. */
struct window_file {
	char name[WINDOW_NAME_BYTES];
	char key[WINDOW_NAME_BYTES]; /* the name, without colons: equal for all files of a window up to the "." */
	uint64_t end_ns; /* of the window, CLOCK_REALTIME in whole seconds */
	uint64_t bytes;
	uint64_t changed_ns; /* CLOCK_REALTIME */
	bool is_own; /* its owner is our user */
	bool is_ahead; /* changed later than now: before the clock was set back */
};

/* A vec, oldest first. */
struct window_list {
	struct window_file *items;
	size_t len;
	size_t size;
};

/* Returns true if window_files_write() gives files such a name. */
bool window_list_named(const char *name);
#define WINDOW_OF_OTHERS EUSERS /* the error of a folder in which other users may replace files */
const char *window_files_error(int err); /* the text of an -errno of the functions below */
/* Opens the folder as out_path_open() does: no other user's link leads elsewhere. The descriptor or -errno. */
int window_folder_open(const char *folder, int flags);
/* Appends the windows' regular files, at most 2^20. Returns 0 or -errno; vec_release() in both cases. */
int window_list_read(int dir, struct window_list *list);

/*
 * Makes the folder if its parent exists, checks that it is ours and that files can be made in it, and removes
 * unfinished files of killed writers. A child does so. Returns 0 or -errno: -ETIMEDOUT when the folder's file system
 * does not answer within 10 s.
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
