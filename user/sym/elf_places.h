/* SPDX-License-Identifier: MIT */
/*
 * Finds functions, variables and static probes of an ELF file by the names that a user gives. Each call reads the
 * file's tables again. base/elf_reader.h bounds what is read.
 */
#ifndef SYM_ELF_PLACES_H
#define SYM_ELF_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/elf_reader.h"
#include "base/vec.h"

/*
 * Finds the address of a defined symbol, with its mangled name; of several, one that other files can use. Returns 0 or
 * -ENOENT; then appends to `nearest`, unless it is NULL, the most similar name if there is one.
 */
int elf_places_symbol(struct elf_reader *reader, const char *name, bool is_function, uint64_t *ret_vaddr,
		      struct buf *nearest);
/* Converts an address to an offset in the file. False if no segment contains it. */
bool elf_places_offset(struct elf_reader *reader, uint64_t vaddr, uint64_t *ret_offset);
/* The opposite. */
bool elf_places_vaddr(struct elf_reader *reader, uint64_t offset, uint64_t *ret_vaddr);

/* A static probe of systemtap's kind, which USDT is. */
struct elf_probe {
	uint64_t offset; /* in the file */
	uint64_t counter; /* of the variable that is above 0 while somebody uses the probe; 0: it has none */
};
struct elf_probes {
	struct vec(struct elf_probe) list;
};

#define ELF_PLACES_MAX_PROBES 256 /* places of one probe */

/*
 * Finds all places of the static probe. Returns their number; 0 if there is none, and then appends to `others` the
 * names of some that the file has; or -errno. The caller releases the list.
 */
int elf_places_probes(struct elf_reader *reader, const char *provider, const char *name, struct elf_probes *ret,
		      struct buf *others);

#endif
