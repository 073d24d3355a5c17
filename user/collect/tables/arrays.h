/* SPDX-License-Identifier: MIT */
/* The flat arrays that hold the unwind tables (duet_unwind.h): BPF maps, or parts of the file of an agent. */
#pragma once

#include <stddef.h>

#include "collect/tables/extents.h"
#include "collect/tables/unwind_tables.h"

/* A shared array, and its free parts. */
struct array {
	void *at; /* NULL: mapped only during a write, because pages that stay mapped count again as our RAM */
	int fd;
	size_t bytes;
	struct extents free;
};

int array_init(struct array *array, const struct unwind_tables_map *map, size_t element_bytes); /* 0 or -ENOMEM */
int array_map(struct array *array, const struct unwind_tables_map *map); /* maps it for good: 0 or -errno */
int array_write(const struct array *array, size_t offset, const void *data, size_t bytes); /* 0 or -errno */
/*
 * Returns a descriptor through which the agent cannot write. The loader relies on the arrays, so the agent cannot open
 * the file again for writing either. Before Linux 5.1 the owner of the file could; the owner is the loader.
 */
int arrays_open_read_only(int fd);
