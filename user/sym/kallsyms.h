/* SPDX-License-Identifier: MIT */
/* The functions of the kernel, its modules and BPF programs, from /proc/kallsyms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "sym/symbol_table.h"

#define KALLSYMS_MIN_AGE_NS (10 * NS_PER_SEC) /* the table is read again after this time at the earliest */

/* Initialize with {0}; the owner releases the table. */
struct kallsyms {
	struct symbol_table table; /* text: name, NUL, module */
	uint64_t read_ns;	   /* CLOCK_MONOTONIC, 0 = never */
};

/*
 * Reads `path`, which is /proc/kallsyms, again, to find modules and BPF programs that were loaded since. Returns 1, or
 * 0 if it is too early, or -errno: -EPERM if the kernel hides its addresses (kptr_restrict). After an error the old
 * table stays.
 */
int kallsyms_refresh(struct kallsyms *kallsyms, const char *path, uint64_t now_ns);
/*
 * The name, or NULL, and its module ("kernel" if it is in none). Both are valid until the next refresh. *ret_start as
 * symbol_table_find().
 */
const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, const char **ret_module,
			  uint64_t *ret_start);

/*
 * Finds the first symbol whose name is `name`, or `name` with a suffix such as ".isra.0" that a compiler gave it.
 * Writes its whole name to `ret`, cut to `room` bytes. The addresses may be hidden. Returns false if there is none.
 */
bool kallsyms_search(const char *path, const char *name, char *ret, size_t room);

/* True if the kernel hides the addresses in `path`, /proc/kallsyms, from us. Then appends the cause and the way out. */
bool kallsyms_hidden(const char *path, struct buf *why);
