/* SPDX-License-Identifier: MIT */
/* Names that a runtime with a JIT compiler writes to /tmp/perf-PID.map, appending as it compiles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc/process.h"
#include "sym/symbol_table.h"

#define PERF_MAP_MAX_BYTES (64u << 20)

/* Initialize with {0}; the owner releases the table. */
struct perf_map {
	struct symbol_table table;
	uint64_t parsed_bytes; /* whole lines of the file that are in the table */
	uint64_t read_ns;      /* 0 = never */
	bool is_full;	       /* full or damaged: no more is read until the file shrinks */
};

/*
 * Adds the lines that were appended since the last call, or all lines again if the file shrank. Returns 0 or -errno;
 * after an error the names read so far stay, and the rest is not tried again: otherwise anyone who can write the file
 * could make us read it every second. The descriptor stays the caller's.
 */
int perf_map_read(struct perf_map *map, int fd);
/* The name until the next call, or NULL. An unknown address has the file read again, at most once a second. */
const char *perf_map_find(struct perf_map *map, const struct process *process, uint64_t address);
