/* SPDX-License-Identifier: MIT */
/* Finds the thread-local variable by which a file's program publishes a thread's trace and span, see duet_context.h. */
#pragma once

#include "base/elf_reader.h"
#include "duet_context.h"

/*
 * Sets *ret: `at` is an address in the file, or with DUET_CONTEXT_FIXED the distance from the thread pointer. Returns
 * 0, or -ENOENT if the file does not export the variable, or uses it in a way that is not known.
 */
int context_symbol_find(struct elf_reader *reader, struct duet_context_source *ret);
