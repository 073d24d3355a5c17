/* SPDX-License-Identifier: MIT */
/*
 * Starts the recorder of this process, `duet`, as the same user. The executable stands beside the library (in its
 * folder, or in ../bin), or it is inside the library. It gets one end of a socket pair and nothing else of this process
 * but the environment, without what would make it load libraries.
 */
#ifndef API_HIRE_H
#define API_HIRE_H

#include <stddef.h>
#include <sys/types.h>

struct hired {
	int socket; /* blocking, O_CLOEXEC */
	pid_t pid;
};

/* Returns 0, or -errno and one sentence in `why`. */
int hire_recorder(struct hired *ret, char *why, size_t size);

#endif
