/* SPDX-License-Identifier: MIT */
/*
 * Finds where a file is to be written, once, and keeps the place as descriptors. A link in a folder that everybody can
 * write to is followed only if the link belongs to us or to the folder's owner. The kernel has this rule as
 * fs.protected_symlinks; here it is applied whatever that is set to, and to every link on the path.
 */
#pragma once

#include <stdbool.h>

struct out_path {
	int dir; /* the folder, O_PATH */
	char *name; /* the file's name in the folder */
	int found; /* the existing file, O_PATH; -1 when there is none */
	bool is_magic; /* `found` was reached through /proc/PID/fd or the like, so `dir` and `name` do not lead to it */
};

/* `follow`: also follow a link in the last component. Returns 0 or -errno: -EACCES for a link that is not trusted. */
int out_path_open(struct out_path *ret, const char *path, bool follow);
void out_path_release(struct out_path *path);
