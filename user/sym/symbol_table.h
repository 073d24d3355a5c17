/* SPDX-License-Identifier: MIT */
/* Sorted address ranges with names, kept compact: 16 bytes for each symbol, and one block of text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/parts.h"
#include "base/vec.h"

#define SYMBOL_TABLE_MAX_TEXT (256u << 20) /* bytes of names */
#define SYMBOL_TABLE_MAX_NAME 4096	   /* longer names are cut */

struct symbol_row {
	uint64_t start;
	uint32_t name;	     /* offset in the text; symbols added later have larger offsets */
	uint32_t size : 29;  /* bytes */
	uint32_t linkage : 2; /* enum symbol_linkage */
	uint32_t is_open : 1; /* the size is unknown: the symbol ends where the next one starts */
};

/* Which code can call a function by this name. */
enum symbol_linkage {
	SYMBOL_LOCAL,	   /* only its own file */
	SYMBOL_SUPERSEDED, /* only programs linked against an old version: name@OLD_VERSION */
	SYMBOL_WEAK,
	SYMBOL_GLOBAL,
};

/* Initialize with {0}. */
struct symbol_table {
	struct vec(struct symbol_row) rows;
	struct buf text; /* its data is NULL before the first symbol */
};

/* Which of several names for one address is kept. */
enum symbol_choice {
	SYMBOL_USUAL,  /* independent of the order of adding, see symbol_table_sort() */
	SYMBOL_NEWEST, /* the last one added */
};

void symbol_table_release(struct symbol_table *table);
size_t symbol_table_bytes(const struct symbol_table *table);
/*
 * Adds a symbol; the name is copied. A size of 0 means unknown: the symbol ends at the next one, after at most `limit`
 * bytes. The `len` bytes of the name may contain a NUL with more text after it. 0, -ENOMEM or -EFBIG.
 */
int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size, uint64_t limit,
		     enum symbol_linkage linkage, const char *name, size_t len);
/* Adds all symbols of another table. 0, -ENOMEM or -EFBIG. */
int symbol_table_add_all(struct symbol_table *table, const struct symbol_table *other);
/*
 * Call after adding symbols and before finding them. More may be added later, and sorted again. The time that it takes
 * is proportional to the number of symbols. When out of memory the table is empty. Of several names for one address
 * SYMBOL_USUAL prefers, in this order:
 *
 * 1. a name of known size: one without a size may be a label, or a mark in the code; 2. a name from the source code,
 * not one that compilers and macros make: f.part.0, f.cold, f_alias_1, __GI_f, __pi_f, __pfx_f; 3. a name that other
 * code can call today, then an old version's (f@OLD), then one local to its file; 4. the name with the fewest leading
 * underscores: write, malloc, clock_gettime, not __write, __libc_malloc; 5. a global name to a weak one; 6. the shorter
 * name: lseek, not lseek64; __x64_sys_getpid, not __ia32_sys_getpid; 7. the first in byte order, so that the choice is
 * stable. A C++ constructor has two symbols, C1 and C2, which demangle to the same name.
 */
void symbol_table_sort(struct symbol_table *table, enum symbol_choice choice);
void symbol_table_pack(struct buf *buf, const struct symbol_table *table);
/* Reads what symbol_table_pack() wrote; sets parts->err if a row has no name. Release the table in any case. */
void symbol_table_unpack(struct parts *parts, struct symbol_table *ret);
/* The name at an address, or NULL. Valid until more symbols are added. *ret_start: where it starts; may be NULL. */
const char *symbol_table_find(const struct symbol_table *table, uint64_t address, uint64_t *ret_start);
