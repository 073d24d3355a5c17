/* SPDX-License-Identifier: MIT */
/* A folder of windows (windows/window_files.h) as an input. */
#ifndef CMD_FOLDER_H
#define CMD_FOLDER_H

#include <stdbool.h>

#include "cmd/inputs.h"
#include "cmd/moment.h"

bool folder_is(const char *path); /* follows links */
/*
 * Appends the windows that may have samples from *from on and before *to, oldest first, of the first format that has
 * times: duet, else jfr. A time of day is the last one before the end of the newest window, and for `to` the first
 * after `from`; both become dates, which are those of all windows. Returns 0, or -errno after reporting the error.
 */
int folder_expand(struct inputs *inputs, const char *folder, struct moment *from, struct moment *to);

#endif
