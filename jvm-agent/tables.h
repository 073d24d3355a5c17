/* SPDX-License-Identifier: MIT */
/*
 * The agent's end of the unwind tables (struct duet_unwind_file): mapped read only, and every index into them checked.
 * The loader is trusted not to lie, but it may die between two stores. Lookups are async-signal-safe.
 */
#ifndef TABLES_H
#define TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet_unwind.h"

struct tables {
	const struct duet_unwind_file *file; /* NULL: there are none */
	struct duet_unwind_file head; /* as it was when it was checked */
	size_t bytes;
	const struct duet_unwind_row *rows;
	const struct duet_unwind_page *pages;
	const struct duet_unwind_module *modules;
	const struct duet_unwind_mapping *mappings;
};

/* Maps the loader's memfd, which stays the caller's. 0 or -errno, and then a sentence in *ret_why (constant text). */
int tables_map(struct tables *tables, int fd, uint64_t bytes, const char **ret_why);
void tables_unmap(struct tables *tables);

/* The process's mappings as they are in force. */
struct tables_slice {
	uint64_t generation; /* 0: none */
	uint32_t first;
	uint32_t count;
};
struct tables_slice tables_begin(const struct tables *tables);
/* Is what was read since tables_begin() what it was then? */
bool tables_unchanged(const struct tables *tables, const struct tables_slice *slice);

/* The mapping that holds pc; false when there is none. */
bool tables_find_mapping(const struct tables *tables, const struct tables_slice *slice, uint64_t pc,
			 struct duet_unwind_mapping *ret);
/* Which rows can be in force `offset` bytes into a module's code; false when it has none. */
bool tables_find_page(const struct tables *tables, uint32_t module, uint64_t offset, struct duet_unwind_page *ret);
/* NULL behind the last. */
const struct duet_unwind_row *tables_row(const struct tables *tables, uint32_t index);

#endif
