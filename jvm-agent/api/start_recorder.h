/* SPDX-License-Identifier: MIT */
/*
 * Starts the recorder of this process, `duet`, as the same user. The executable is beside the library (in its folder,
 * or in ../bin), or inside the library. The recorder gets one end of a socket pair and the environment without
 * variables that would make it load libraries. It gets nothing else of this process.
 */
#ifndef API_START_RECORDER_H
#define API_START_RECORDER_H

#include <stddef.h>
#include <sys/types.h>

struct started_recorder {
	int socket; /* blocking, O_CLOEXEC */
	pid_t pid;
};

/* Returns 0, or -errno and one sentence in `why`. */
int start_recorder(struct started_recorder *ret, char *why, size_t size);

#endif
