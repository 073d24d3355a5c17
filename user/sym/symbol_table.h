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
	uint32_t size : 31;  /* bytes */
	uint32_t is_open : 1; /* the source knows no size: ends where the next one starts */
};

struct symbol_table {
	struct vec(struct symbol_row) rows;
	struct buf text;
};

/* Which of several names for one address is kept. */
enum symbol_choice {
	SYMBOL_PLAINEST, /* of known size, then with the fewest leading underscores, then the first */
	SYMBOL_NEWEST,	 /* the last one added */
};

void symbol_table_init(struct symbol_table *table);
void symbol_table_release(struct symbol_table *table);
/*
 * size 0 means unknown: up to the next symbol, at most `limit` bytes. `len` bytes of
 * name may hold a NUL, to carry more text behind it. 0, -ENOMEM or -EFBIG.
 */
int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size, uint64_t limit, const char *name,
		     size_t len);
/* All of another table. */
int symbol_table_add_all(struct symbol_table *table, const struct symbol_table *other);
/* To be called after adding and before finding; more may be added later. */
void symbol_table_sort(struct symbol_table *table, enum symbol_choice choice);
/* The name, or NULL. Valid until more is added. */
const char *symbol_table_find(const struct symbol_table *table, uint64_t address);

#endif
