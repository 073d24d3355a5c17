/* SPDX-License-Identifier: MIT */
/*
 * What ELF files of targets hold, as a parser says (proc/helper.h). The loader itself parses none of their bytes. Each
 * call takes a file after target_file_read(), and returns 0 or -errno: -EPROTO if the parser failed.
 */
#pragma once

#include "base/buf.h"
#include "sym/elf_file.h"
#include "sym/elf_places.h"
#include "sym/target_file.h"

/* As elf_file_read(), and mini_debug_apply() if it has no .symtab. */
int parsed_symbols(struct elf_file *ret, const struct charge *charge, const struct target_file *file);
int parsed_identity(struct elf_identity *ret, const struct charge *charge, const struct target_file *file);
int parsed_segments(struct elf_segments *ret, const struct charge *charge, const struct target_file *file);
/*
 * As elf_places_symbol(), for the first symbol that the file has among `names`, which are lines. Returns the number of
 * its line, from 0 on.
 */
int parsed_symbol(const struct charge *charge, const struct target_file *file, const char *names, bool is_function,
		  uint64_t *ret_vaddr, struct buf *nearest);
/* As elf_places_probes(). */
int parsed_probes(const struct charge *charge, const struct target_file *file, const char *provider, const char *name,
		  struct elf_probes *ret, struct buf *others);
