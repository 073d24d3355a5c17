/* SPDX-License-Identifier: MIT */
/*
 * Functions that no table describes, but whose code shows that they keep the frame pointer: V8's built-in functions,
 * and those of other projects with compilers or assemblers of their own. When such a function calls another one, it has
 * made its frame, so the frame pointer certainly leads to its caller.
 */
#ifndef UNWIND_FRAMED_H
#define UNWIND_FRAMED_H

#include "base/elf_reader.h"
#include "unwind/unwind_rows.h"

/*
 * Adds rows for such functions that the file's .symtab names. Returns 0, -ENODATA if there are none, -E2BIG or -ENOMEM;
 * after an error the rows are as before.
 */
int framed_add(struct unwind_rows *rows, struct elf_reader *reader, uint64_t code_start, uint64_t code_end);

#endif
