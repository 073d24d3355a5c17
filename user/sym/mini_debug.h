/* SPDX-License-Identifier: MIT */
/* "MiniDebugInfo": symbols of functions that are not exported, as a small compressed ELF file in the file itself. */
#ifndef SYM_MINI_DEBUG_H
#define SYM_MINI_DEBUG_H

#include "sym/elf_file.h"

/* Adds them to those of `file`, read from `fd`; `path` is for a message. Nothing happens when there are none. */
void mini_debug_apply(struct elf_file *file, int fd, const char *path);

#endif
