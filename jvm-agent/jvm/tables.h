/* SPDX-License-Identifier: MIT */
/*
 * The agent's end of the unwind tables (struct duet_unwind_file). They are mapped read only, and every index into them
 * is checked: the loader is trusted not to lie, but it may die between two stores. Lookups are async-signal-safe.
 */
#pragma once

#include <stddef.h>

#include "duet_unwind.h"

struct tables {
	const struct duet_unwind_file *file; /* NULL: there are none */
	struct duet_unwind_file head; /* copy of the file's head, made when it was checked */
	size_t bytes;
	const struct duet_unwind_row *rows;
	const struct duet_unwind_page *pages;
	const struct duet_unwind_module *modules;
	const struct duet_unwind_mapping *mappings;
};

/* Maps the loader's memfd; the caller keeps it. Returns 0, or -errno and a sentence in *ret_why (constant text). */
int tables_map(struct tables *tables, int fd, uint64_t bytes, const char **ret_why);
void tables_unmap(struct tables *tables);

/* The process's mappings that are in force. */
struct tables_slice {
	uint64_t generation; /* 0: none */
	uint32_t first;
	uint32_t count;
};
struct tables_slice tables_begin(const struct tables *tables);
/* Returns true if the tables have not changed since tables_begin(), so that what was read in between is valid. */
bool tables_unchanged(const struct tables *tables, const struct tables_slice *slice);

/* Finds the mapping that holds pc; returns false when there is none. */
bool tables_find_mapping(const struct tables *tables, const struct tables_slice *slice, uint64_t pc,
			 struct duet_unwind_mapping *ret);
/* Finds the range of rows that can apply `offset` bytes into a module's code; returns false when it has none. */
bool tables_find_page(const struct tables *tables, uint32_t module, uint64_t offset, struct duet_unwind_page *ret);
/* Returns NULL past the last row. */
const struct duet_unwind_row *tables_row(const struct tables *tables, uint32_t index);
