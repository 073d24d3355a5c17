/* SPDX-License-Identifier: MIT */
/*
 * Files as another process sees them. Its links are followed inside its own root,
 * and nothing but a regular file is ever opened: opening a device can have effects,
 * opening a FIFO can block.
 */
#ifndef SYM_TARGET_FILE_H
#define SYM_TARGET_FILE_H

#include <sys/types.h>

#include "proc/maps.h"
#include "proc/process.h"

/* `path` in the root of process `pid`. A descriptor for reading or -errno. */
int target_file_open(pid_t pid, const char *path);
/* The very file that is mapped, also when it was deleted or replaced; -ESTALE when only another one has its path. */
int target_file_open_mapping(const struct process *process, const struct mapping *mapping);

#endif
