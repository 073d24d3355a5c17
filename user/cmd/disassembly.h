/* SPDX-License-Identifier: MIT */
/*
 * The instructions of native functions, from files that the user names. The file is read within the bounds of
 * base/elf_reader.h, and only the bytes of the function are given to objdump: it never reads a header that somebody
 * else has written. It runs without rights, with limits of time and memory.
 */
#pragma once

#include "base/opt.h"
#include "base/vec.h"
#include "sym/elf_file.h"
#include "writers/text/annotation.h"

struct disassembly_function {
	char *module, *name;
	struct code_text code; /* empty: there is none */
};

/* Initialize with the paths only. */
struct disassembly {
	const struct opt_strings *files;
	struct vec(struct disassembly_function *) functions; /* that were asked for */
};

/*
 * An annotation_code whose context is a struct disassembly. Reports once for each function why there are no
 * instructions.
 */
const struct code_text *disassembly_find(void *context, const char *module, const char *name);
void disassembly_release(struct disassembly *disassembly);

/*
 * Appends what objdump's text has for the function that begins at `start`: its lines "address:\tinstruction". Lines of
 * another form are left out. `file` has the names of the functions that are jumped to; NULL: they get no names. Changes
 * `text`. Returns 0 or -ENOMEM.
 */
int disassembly_parse(char *text, uint64_t start, const struct elf_file *file, struct code_text *ret);
