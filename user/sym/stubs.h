/* SPDX-License-Identifier: MIT */
/*
 * Names of what linkers and the C library put into code without a symbol: entries of procedure linkage tables, called
 * after what they lead to (memcpy@plt), and the trampoline that signal handlers return to (__restore_rt).
 */
#ifndef SYM_STUBS_H
#define SYM_STUBS_H

#include "base/elf_reader.h"
#include "sym/symbol_table.h"

/*
 * Into a new table, sorted. `symbols`, sorted too, are the file's: they tell what an entry without a name of its own
 * leads to. 0 or -ENOMEM.
 */
int stubs_read(struct symbol_table *stubs, struct elf_reader *elf, const struct symbol_table *symbols);

#endif
