/* SPDX-License-Identifier: MIT */
/*
 * A log of the programs and files that processes mapped recently, as the kernel reported them. A process that lives for
 * a millisecond is no longer in /proc when its sample is read, but the log has its mappings. It holds a fixed number of
 * notes and drops the oldest first.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "proc/maps.h"

#define MAPPING_LOG_NOTES 8192 /* about one second of 2,000 short processes per second with four mappings each */

#define MAPPING_LOG_MAPPINGS 512 /* most mappings of one process, which bounds the time that it can cost */

enum mapping_note_kind {
	MAPPING_NOTE_MAPPED,
	MAPPING_NOTE_EXEC, /* an exec: the process has none of its earlier mappings any more */
	MAPPING_NOTE_FORKED, /* a fork: the child has the mappings of `parent` */
};

struct mapping_note {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t previous; /* set by the log: number of the previous note of this process; 0 = none */
	pid_t pid;
	pid_t parent; /* for MAPPING_NOTE_FORKED */
	enum mapping_note_kind kind;
	struct mapping mapping; /* for MAPPING_NOTE_MAPPED; executable */
};

/* All zero is an empty log. */
struct mapping_log {
	struct mapping_note *notes; /* a ring, owned, with the paths; NULL before the first note */
	uint64_t count; /* notes added so far; a note's number is this count after it was added */
	struct map last; /* pid -> number of its last note */
};

void mapping_log_release(struct mapping_log *log);
/* Copies the path. Returns 0 or -ENOMEM. */
int mapping_log_add(struct mapping_log *log, const struct mapping_note *note);
/*
 * Adds to `maps` the mappings that `pid` had made itself and had at `time_ns`. Sets *ret_parent to the parent if the
 * process was forked and has not called exec: then it also has the mappings that the parent had at *ret_forked_ns.
 * Otherwise *ret_parent is 0. Returns 0, -ENOMEM, or -ENOENT with nothing added when the process's exec or fork is not
 * in the log.
 */
int mapping_log_find(const struct mapping_log *log, pid_t pid, uint64_t time_ns, struct maps *maps, pid_t *ret_parent,
		     uint64_t *ret_forked_ns);
/*
 * Returns the oldest note whose number is above *number, and sets *number to the note's number; NULL when there is
 * none. Begin with 0. Skips notes that were dropped since.
 */
const struct mapping_note *mapping_log_next(const struct mapping_log *log, uint64_t *number);
/* Returns true if the process has called exec since then. */
bool mapping_log_has_exec(const struct mapping_log *log, pid_t pid, uint64_t since_ns);
