/* SPDX-License-Identifier: MIT */
/*
 * "MiniDebugInfo": a small compressed ELF file inside an ELF file, with the symbols of functions that are not exported.
 */
#ifndef SYM_MINI_DEBUG_H
#define SYM_MINI_DEBUG_H

#include "sym/elf_file.h"

/* Adds these symbols, if there are any, to `file`, which was read from `fd`. `path` is for a log message. */
void mini_debug_apply(struct elf_file *file, int fd, const char *path);

#endif
