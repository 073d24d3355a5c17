/* SPDX-License-Identifier: MIT */
/*
 * A place for the agent where a JVM's container has none: hardened ones
 * mount all that can be written noexec. It is a tmpfs over a new folder in the
 * target's /tmp, as long as the attach takes. A helper process keeps it: mounting
 * takes the loader's rights, which the child that attaches gives up, and so
 * it is gone however the attach ends.
 *
 * In the target's mount namespace any name may lead anywhere, also to what its user may not open himself. So the tmpfs
 * is written while it is mounted nowhere (fsopen(2), Linux 5.2), the folder is made with the rights of the target's
 * user, and nothing is written, or changed in its mode, by a path through the target's files.
 */
#ifndef ATTACH_STAGE_H
#define ATTACH_STAGE_H

#include <sys/types.h>

#include "attach/visit.h"

struct stage {
	pid_t helper; /* 0 = there is none */
	int socket; /* the helper tidies up when its other end is closed */
	char path[128]; /* of the library, in the target's root */
};

struct stage_outcome { /* from the helper */
	int error;
	char path[128];
};

/*
 * Call with the loader's rights. 0 or -errno: -EPERM without CAP_SYS_ADMIN, -ENOSYS before Linux 5.2; then nothing is
 * left behind.
 */
int stage_open(const struct visit *visit, struct stage *ret_stage);
void stage_close(struct stage *stage);

#endif
