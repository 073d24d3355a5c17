/* SPDX-License-Identifier: MIT */
/* Symbols that a distribution ships apart from the stripped file. */
#ifndef SYM_DEBUG_FILE_H
#define SYM_DEBUG_FILE_H

#include <sys/types.h>

#include "sym/elf_file.h"

/*
 * Replaces the symbols of `file`, which lies at `path`, by those of its debug file:
 * by build id or .gnu_debuglink, in the root of process `pid` and then in ours.
 * Nothing happens when none fits.
 */
void debug_file_apply(struct elf_file *file, pid_t pid, const char *path);

#endif
