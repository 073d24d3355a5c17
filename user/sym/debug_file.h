/* SPDX-License-Identifier: MIT */
/* What a distribution ships apart from the stripped file. */
#ifndef SYM_DEBUG_FILE_H
#define SYM_DEBUG_FILE_H

#include <sys/types.h>

#include "sym/elf_file.h"

/* True when the file is what was looked for. The descriptor stays the caller's. */
typedef bool (*debug_file_take)(void *context, int fd);
/*
 * The debug files of `file`, which lies at `path`: by build id or .gnu_debuglink, in the root of process `pid` and then
 * in ours, until `take` returns true. False when it never did.
 */
bool debug_file_find(const struct elf_identity *file, pid_t pid, const char *path, debug_file_take take, void *context);
/* Replaces the symbols of `file` by those of its debug file. Nothing happens when none fits. */
void debug_file_apply(struct elf_file *file, pid_t pid, const char *path);

#endif
