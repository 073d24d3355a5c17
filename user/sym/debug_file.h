/* SPDX-License-Identifier: MIT */
/* Separate debug files, which distributions ship for stripped files. */
#pragma once

#include "sym/elf_file.h"
#include "sym/target_file.h"

/* Returns true to end the search. The file stays the caller's. */
typedef bool (*debug_file_take)(void *context, const struct charge *charge, const struct target_file *debug);
/*
 * Calls `take` for each debug file of `file` until it returns true. `path` is where `file` lies; `target` is that file.
 * Debug files are found by build id or .gnu_debuglink, first in the root of the target's process, then in ours. They
 * are used for all processes that map the file. So only those count that root, or a user who may change the file
 * itself, put there. Returns false if `take` never returned true.
 */
bool debug_file_find(const struct elf_identity *file, const struct charge *charge, const struct target_file *target,
		     const char *path, debug_file_take take, void *context);
/*
 * Finds the address of a symbol, like elf_places_symbol(), in the debug files of `target`, which was opened by
 * target_file_read() and lies at `path`. Returns false if none has it.
 */
bool debug_file_symbol(const struct charge *charge, const struct target_file *target, const char *path,
		       const char *name, bool is_function, uint64_t *ret_vaddr);
/* Replaces the symbols of `file` by those of its debug file, if there is one. */
void debug_file_apply(struct elf_file *file, const struct charge *charge, const struct target_file *target,
		      const char *path);
