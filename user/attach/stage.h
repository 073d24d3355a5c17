/* SPDX-License-Identifier: MIT */
/*
 * A place for the agent where a JVM's container has none: hardened ones
 * mount all that can be written noexec. It is a tmpfs over a new folder in the
 * target's /tmp, as long as the attach takes. A helper process keeps it: mounting
 * takes the loader's rights, which the child that attaches gives up, and so
 * it is gone however the attach ends.
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

/* Call with the loader's rights. 0 or -errno: -EPERM without CAP_SYS_ADMIN; then nothing is left behind. */
int stage_open(const struct visit *visit, struct stage *ret_stage);
void stage_close(struct stage *stage);

#endif
