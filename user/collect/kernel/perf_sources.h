/* SPDX-License-Identifier: MIT */
/*
 * What perf can open: the kernel's tracepoints, as tracefs describes them, and its counters (PMUs), as
 * /sys/bus/event_source/devices does. Used inside collect/ only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "event/event.h"

/*
 * Opens the folder of all tracepoints. If tracefs is not mounted, makes a mount that no other process sees (Linux 5.2).
 * Returns a descriptor, or -errno with the cause and the way out in `why`.
 */
int tracefs_open(struct buf *why);

struct tracefs_field {
	uint32_t offset, bytes; /* position in the tracepoint's record */
	bool is_signed;
};

/*
 * Finds the tracepoint's number and, unless `field` is NULL, that field, which must be a whole number. `folder` is from
 * tracefs_open(). Returns 0, or -errno with one sentence in `why`.
 */
int tracefs_find(int folder, const char *group, const char *name, const char *field, uint64_t *ret_id,
		 struct tracefs_field *ret_field, struct buf *why);

/* Reads a field from the text of a file "format". Returns 0, -ENOENT, or -EINVAL if it is not a whole number. */
int tracefs_parse_field(const char *format, const char *field, struct tracefs_field *ret);

/* Returns the number that perf_event_open() takes as type for this PMU, or -ENOENT. */
int pmu_type(const char *pmu);

/* Sets type and config by terms: "cache-misses", "event=0xc0,umask=1". 0, or -errno with one sentence in `why`. */
int pmu_find(struct event_perf *perf, const char *pmu, const char *terms, struct buf *why);
