/* SPDX-License-Identifier: MIT */
/* Separate debug files, which distributions ship for stripped files. */
#ifndef SYM_DEBUG_FILE_H
#define SYM_DEBUG_FILE_H

#include <sys/types.h>

#include "sym/elf_file.h"

/* Returns true to end the search. The descriptor stays the caller's. */
typedef bool (*debug_file_take)(void *context, int fd);
/*
 * Calls `take` for each debug file of `file` until it returns true. `path` is where `file` lies. Debug files are found
 * by build id or .gnu_debuglink, first in the root of process `pid`, then in ours. Returns false if `take` never
 * returned true.
 */
bool debug_file_find(const struct elf_identity *file, pid_t pid, const char *path, debug_file_take take, void *context);
/* Replaces the symbols of `file` by those of its debug file, if there is one. */
void debug_file_apply(struct elf_file *file, pid_t pid, const char *path);

#endif
