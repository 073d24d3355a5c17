/* SPDX-License-Identifier: MIT */
/* Sorted address ranges with names, as compact as it gets: 16 bytes a symbol and one block of text. */
#ifndef SYM_SYMBOL_TABLE_H
#define SYM_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

#define SYMBOL_TABLE_MAX_TEXT (256u << 20) /* bytes of names */
#define SYMBOL_TABLE_MAX_NAME 4096	   /* longer names are cut */

struct symbol_row {
	uint64_t start;
	uint32_t name;	     /* offset in the text; grows in the order of adding */
	uint32_t size : 29;  /* bytes */
	uint32_t linkage : 2; /* enum symbol_linkage */
	uint32_t is_open : 1; /* the source knows no size: ends where the next one starts */
};

/* Who can call a function by this name. */
enum symbol_linkage {
	SYMBOL_LOCAL,	   /* only its own file */
	SYMBOL_SUPERSEDED, /* programs that were linked long ago: name@OLD_VERSION */
	SYMBOL_WEAK,
	SYMBOL_GLOBAL,
};

struct symbol_table {
	struct vec(struct symbol_row) rows;
	struct buf text;
};

/* Which of several names for one address is kept. */
enum symbol_choice {
	SYMBOL_USUAL,  /* whatever the order of adding, see symbol_table_sort() */
	SYMBOL_NEWEST, /* the last one added */
};

void symbol_table_init(struct symbol_table *table);
void symbol_table_release(struct symbol_table *table);
/*
 * size 0 means unknown: up to the next symbol, at most `limit` bytes. `len` bytes of
 * name may hold a NUL, to carry more text behind it. 0, -ENOMEM or -EFBIG.
 */
int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size, uint64_t limit,
		     enum symbol_linkage linkage, const char *name, size_t len);
/* All of another table. */
int symbol_table_add_all(struct symbol_table *table, const struct symbol_table *other);
/*
 * To be called after adding and before finding; more may be added later. Of several names for one address SYMBOL_USUAL
 * prefers, in this order,
 *
 *	1. one of known size: what has none may be a label, or a mark in the code;
 *	2. one that somebody wrote: not f.part.0, f.cold, f_alias_1, __GI_f, __pi_f, __pfx_f, of compilers and macros;
 *	3. one that others can call today: not a file's own, nor, before that, an old version's, f@OLD;
 *	4. the fewest leading underscores: write, malloc, clock_gettime, not __write, __libc_malloc;
 *	5. a global one to a weak one;
 *	6. the shorter one: lseek, not lseek64; __x64_sys_getpid, not __ia32_sys_getpid;
 *	7. the first in byte order, so that the choice is stable. A C++ constructor has two symbols, C1 and C2, which
 *	   demangle to the same name.
 */
void symbol_table_sort(struct symbol_table *table, enum symbol_choice choice);
/* The name, or NULL. Valid until more is added. */
const char *symbol_table_find(const struct symbol_table *table, uint64_t address);

#endif
