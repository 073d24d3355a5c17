/* SPDX-License-Identifier: MIT */
/*
 * Makes a place for the agent library in a container that has none: hardened containers mount everything writable
 * noexec. It mounts a tmpfs over a new folder in the target's /tmp for as long as the attach takes. A helper process
 * makes and removes the mount, for two reasons: mounting needs the loader's rights, which the attach child gives up,
 * and the mount is removed however the attach ends.
 *
 * In the target's mount namespace any path may lead anywhere, also to files that the target's user may not open. So the
 * tmpfs is filled while it is mounted nowhere (fsopen(2), Linux 5.2), the folder is made with the rights of the
 * target's user, and no file is written and no mode changed by a path through the target's files.
 */
#ifndef ATTACH_PLACE_MOUNT_H
#define ATTACH_PLACE_MOUNT_H

#include <sys/types.h>

#include "attach/visit.h"

struct place_mount {
	pid_t helper; /* 0 = no mount is open */
	int socket; /* closing it makes the helper remove the mount */
	char path[128]; /* the library's path in the target's root */
};

struct place_mount_outcome { /* sent by the helper */
	int error;
	char path[128];
};

/*
 * Call with the loader's rights. Returns 0 or -errno: -EPERM without CAP_SYS_ADMIN, -ENOSYS before Linux 5.2. On
 * failure nothing is left behind.
 */
int place_mount_open(const struct visit *visit, struct place_mount *ret_mount);
void place_mount_close(struct place_mount *mount);

#endif
