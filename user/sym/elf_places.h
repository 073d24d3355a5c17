/* SPDX-License-Identifier: MIT */
/*
 * Finds functions, variables and static probes of an ELF file by the names that a user gives. Each call reads the
 * file's tables again. base/elf_reader.h bounds what is read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/elf_reader.h"
#include "base/vec.h"
#include "duet_context.h"

/*
 * Finds the address of a defined symbol, with its mangled name, of which a '*' at the end stands for any rest. If there
 * are several, prefers one that other files can use. Returns 0, or -ENOENT; then appends the most similar name to
 * `nearest`, unless there is none or `nearest` is NULL.
 */
int elf_places_symbol(struct elf_reader *reader, const char *name, bool is_function, uint64_t *ret_vaddr,
		      struct buf *nearest);
/* A static probe in systemtap's format, which USDT uses. */
struct elf_probe {
	uint64_t offset; /* in the file */
	uint64_t counter; /* address of the variable that is above 0 while a tracer uses the probe; 0: it has none */
};
struct elf_probes {
	struct vec(struct elf_probe) list;
};

#define ELF_PLACES_MAX_PROBES 256 /* most places of one probe */

/*
 * Finds all places of the static probe. Returns their number, or -errno. If there are none, returns 0 and appends names
 * of some probes that the file has to `others`. The caller releases the list.
 */
int elf_places_probes(struct elf_reader *reader, const char *provider, const char *name, struct elf_probes *ret,
		      struct buf *others);

/*
 * Finds the thread-local variable by which a program publishes a thread's trace and span, see duet_context.h. In *ret,
 * `at` is an address in the file, or with DUET_CONTEXT_FIXED the distance from the thread pointer. Returns 0, or
 * -ENOENT if the file does not export the variable, or uses it in a way that is not known.
 */
int elf_places_context(struct elf_reader *reader, struct duet_context_source *ret);
