/* SPDX-License-Identifier: MIT */
/*
 * Functions of which no table tells, but whose code shows that they keep the frame pointer: V8 has built-in ones, and
 * others of compilers and assemblers of their own. Where such a function calls another one it has made its frame, and
 * the frame pointer leads to its caller for certain.
 */
#ifndef UNWIND_FRAMED_H
#define UNWIND_FRAMED_H

#include "base/elf_reader.h"
#include "unwind/unwind_rows.h"

/*
 * Adds rows for those that the file's .symtab names. 0, -ENODATA when there are none, or as unwind_rows_merge(): the
 * rows are as before then.
 */
int framed_add(struct unwind_rows *rows, struct elf_reader *reader, uint64_t code_start, uint64_t code_end);

#endif
