/* SPDX-License-Identifier: MIT */
/*
 * Where a file is to be written, found once and kept as descriptors. A link is followed only where nobody else can have
 * put it in our way: not one in a folder that everybody may write to, unless it belongs to us or to the folder's owner
 * (the kernel's fs.protected_symlinks, whatever that is set to, and for all links on the way).
 */
#ifndef BASE_OUT_PATH_H
#define BASE_OUT_PATH_H

#include <stdbool.h>

struct out_path {
	int dir; /* the folder, O_PATH */
	char *name; /* in it */
	int found; /* what stands there, O_PATH; -1 for nothing */
	bool is_magic; /* `found` was reached through /proc/PID/fd or the like: dir and name do not lead there */
};

/* `follow`: the last name too, if it is a link. 0 or -errno: -EACCES for a link that is not trusted. */
int out_path_open(struct out_path *ret, const char *path, bool follow);
void out_path_release(struct out_path *path);

#endif
