/* SPDX-License-Identifier: MIT */
/* The files that a command line names, and what is in them. */
#pragma once

#include <stdbool.h>

#include "base/vec.h"
#include "cmd/selection.h"
#include "profile/profile.h"

struct input {
	char *path; /* owned; "-" is stdin */
	uint32_t number; /* in struct work */
	uint32_t word; /* that stands for it */
	uint32_t folder; /* of which it is a window (windows/window_files.h); 0: it is none */
	uint64_t end_ns; /* of the window, as its name says */
};

/* A vec. Several inputs may come from one word. */
struct inputs {
	struct input *items;
	size_t len;
	size_t size;
	uint32_t words, folders;
};

/*
 * Appends the words; in the place of one with *, ? or [ that is no file's name, the files that match it, sorted; with
 * folders, in the place of a folder its windows, oldest first, of the first format that has times: duet, else jfr.
 * Returns 0, or -errno after reporting the error. Call inputs_release() in both cases.
 */
int inputs_expand(struct inputs *inputs, char **words, size_t count, bool with_folders);
void inputs_release(struct inputs *inputs);

bool folder_is(const char *path); /* follows links */

/* ---- what reads them: in the work alone (cmd/work.h) ---- */

/*
 * Appends the inputs without the windows that cannot have samples from *from on and before *to. A time of day is the
 * last one before the end of the newest window, and for `to` the first after `from`; both become dates, which are those
 * of all windows. The paths stay those of `inputs`: call vec_release(). Returns 0, or -errno after reporting the error.
 */
int inputs_choose(const struct inputs *inputs, struct moment *from, struct moment *to, struct inputs *ret);
/*
 * Initialises `profile` and reads the inputs of this word into it, or all, which are merged. Warns about what is
 * missing in a file. Returns 0, or -errno after reporting the error; then there is nothing to release.
 */
int inputs_read(struct profile *profile, const struct inputs *inputs, uint32_t word);
int inputs_read_all(struct profile *profile, const struct inputs *inputs);
