/* SPDX-License-Identifier: MIT */
/* Profiles from the files that a command line names. */
#ifndef CMD_INPUTS_H
#define CMD_INPUTS_H

#include "profile/profile.h"

/*
 * Reads the file ("-" is stdin) into `profile`, which it initialises. Tells the user what is missing in it. Returns 0,
 * or -errno after the user was told; then there is nothing to release.
 */
int inputs_read(struct profile *profile, const char *path);
/* The same for several, which are merged. */
int inputs_read_all(struct profile *profile, char **paths, size_t count);

#endif
