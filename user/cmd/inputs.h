/* SPDX-License-Identifier: MIT */
/* Reads the files that a command line names. */
#pragma once

#include <stdbool.h>

#include "base/vec.h"
#include "cmd/selection.h"
#include "profile/profile.h"

/*
 * Initialises `profile` and reads the file ("-" is stdin) into it. Warns about what is missing in the file. Returns 0,
 * or -errno after reporting the error; then there is nothing to release.
 */
int inputs_read(struct profile *profile, const char *path);
/* The same for several files, which are merged. */
int inputs_read_all(struct profile *profile, char **paths, size_t count);

/* The same for the words of a command line, which may be patterns. */
int inputs_read_words(struct profile *profile, char **words, size_t count);

/* Names of files, owned. A vec. */
struct inputs {
	char **items;
	size_t len;
	size_t size;
};

/*
 * Appends the words; in the place of one with *, ? or [ that is no file's name, the files that match it, sorted.
 * Returns 0, or -errno after reporting the error. Call inputs_release() in both cases.
 */
int inputs_expand(struct inputs *inputs, char **words, size_t count);
/* Replaces each folder by its windows of this time, and the times by dates. Returns as above. */
int inputs_expand_folders(struct inputs *inputs, struct moment *from, struct moment *to);
void inputs_release(struct inputs *inputs);

/* ---- a folder of windows (windows/window_files.h) ---- */

bool folder_is(const char *path); /* follows links */
/*
 * Appends the windows that may have samples from *from on and before *to, oldest first, of the first format that has
 * times: duet, else jfr. A time of day is the last one before the end of the newest window, and for `to` the first
 * after `from`; both become dates, which are those of all windows. Returns 0, or -errno after reporting the error.
 */
int folder_expand(struct inputs *inputs, const char *folder, struct moment *from, struct moment *to);
