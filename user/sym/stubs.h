/* SPDX-License-Identifier: MIT */
/*
 * Names for code without a symbol that linkers and the C library make: the entries of procedure linkage tables, which
 * are named after the function they jump to (memcpy@plt), and the trampoline to which signal handlers return
 * (__restore_rt).
 */
#pragma once

#include "base/elf_reader.h"
#include "sym/symbol_table.h"

/*
 * Fills the empty table `stubs` and sorts it. `symbols` are the file's own, sorted; they name the functions to which
 * entries without a name of their own jump. 0 or -ENOMEM.
 */
int stubs_read(struct symbol_table *stubs, struct elf_reader *elf, const struct symbol_table *symbols);
