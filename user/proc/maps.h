/* SPDX-License-Identifier: MIT */
/* A process's executable mappings, sorted by address, from /proc/PID/maps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/vec.h"

#define MAPS_MAX_FILE (16u << 20) /* bytes read of /proc/PID/maps; a longer file means a hostile or broken process */

struct mapping {
	uint64_t start;
	uint64_t end; /* exclusive */
	uint64_t offset; /* bytes, in the file */
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	char *path; /* owned; "" if anonymous; names such as "[vdso]" as printed; without " (deleted)" */
};

/* True if its code is of a file, not of named memory: .NET keeps code in a memfd, which it writes elsewhere. */
bool mapping_is_file(const struct mapping *mapping);

struct maps {
	struct vec(struct mapping) list;
};

/* Parses the text of a maps file and skips malformed lines. Returns 0, or -ENOMEM with `maps` unchanged. */
int maps_parse(struct maps *maps, const char *text, size_t len);
int maps_read(struct maps *maps, pid_t pid); /* returns 0, or -errno with `maps` unchanged */
/* The same; proc_fd is /proc/PID, so that a reused pid cannot change which process is read. */
int maps_read_at(struct maps *maps, pid_t pid, int proc_fd);
/* Adds a copy of `mapping`, unless it overlaps an existing one. Returns 0 or -ENOMEM. */
int maps_add(struct maps *maps, const struct mapping *mapping);
void maps_release(struct maps *maps);
bool maps_equal(const struct maps *a, const struct maps *b);
/* returns NULL if no mapping has the address */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);
/* Returns the first mapping whose file name (after the last '/') is `name`, or NULL. */
const struct mapping *maps_find_file(const struct maps *maps, const char *name);
const struct mapping *maps_libjvm(const struct maps *maps); /* NULL: the process is not a JVM */
