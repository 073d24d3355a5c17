/* SPDX-License-Identifier: MIT */
/*
 * Functions that no table describes, but whose code shows that they keep the frame pointer: V8's built-in functions,
 * and those of other projects with compilers or assemblers of their own. When such a function calls another one, it has
 * made its frame, so the frame pointer leads to its caller.
 *
 * Functions of Go's runtime that switch to another stack before they call. Their table describes the stack that they
 * were called on. The frame pointer still leads there, or the stack that they switch to begins with them.
 */
#ifndef UNWIND_FRAMED_H
#define UNWIND_FRAMED_H

#include "base/elf_reader.h"
#include "unwind/unwind_rows.h"

/* The search for such functions among those that a file's .symtab names, in several steps. */
struct framed {
	struct elf_reader *reader;
	Elf_Data *symbols;
	size_t names; /* index of the section with their names */
	int next; /* index of the next symbol */
	uint64_t code_start, code_end;
	uint64_t looked_at; /* bytes of code searched so far */
	struct vec(struct unwind_span) found;
	struct vec(struct unwind_span) switches; /* calls on another stack */
};

/* Returns 0, or -ENODATA if the file has no .symtab. The reader must stay open until framed_end(). */
int framed_begin(struct framed *framed, struct elf_reader *reader, uint64_t code_start, uint64_t code_end);
/*
 * Searches until until_ns. After the last symbol, adds rows for the functions found to `rows`, which must be the same
 * at each call. Returns 0, -EAGAIN before the last symbol, -ENODATA if nothing was found, -E2BIG or -ENOMEM; after an
 * error the rows are as before.
 */
int framed_step(struct framed *framed, struct unwind_rows *rows, uint64_t until_ns);
void framed_end(struct framed *framed);

#endif
