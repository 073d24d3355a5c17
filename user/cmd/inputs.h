/* SPDX-License-Identifier: MIT */
/* Reads the files that a command line names. */
#ifndef CMD_INPUTS_H
#define CMD_INPUTS_H

#include "profile/profile.h"

/*
 * Initialises `profile` and reads the file ("-" is stdin) into it. Warns about what is missing in the file. Returns 0,
 * or -errno after reporting the error; then there is nothing to release.
 */
int inputs_read(struct profile *profile, const char *path);
/* The same for several files, which are merged. */
int inputs_read_all(struct profile *profile, char **paths, size_t count);

#endif
