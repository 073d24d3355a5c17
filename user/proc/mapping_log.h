/* SPDX-License-Identifier: MIT */
/*
 * What the kernel told of programs and files that processes mapped in the last moments: when its sample is read, /proc
 * has nothing more to say of one that lived for a millisecond. Holds a fixed number of notes; the oldest go first.
 */
#ifndef PROC_MAPPING_LOG_H
#define PROC_MAPPING_LOG_H

#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "proc/maps.h"

#define MAPPING_LOG_NOTES 8192 /* of 2,000 short processes with four mappings each, the last second */

#define MAPPING_LOG_MAPPINGS 512 /* of one process: more are not looked for, nobody shall make it cost time */

enum mapping_note_kind {
	MAPPING_NOTE_MAPPED,
	MAPPING_NOTE_EXEC, /* nothing is mapped any more */
	MAPPING_NOTE_FORKED, /* what `parent` had is mapped */
};

struct mapping_note {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t previous; /* the log's own: number of the note before of this process; 0 = none */
	pid_t pid;
	pid_t parent; /* FORKED */
	enum mapping_note_kind kind;
	struct mapping mapping; /* MAPPED; executable */
};

/* Zeroed, it is empty. */
struct mapping_log {
	struct mapping_note *notes; /* owned, with their paths; NULL before the first */
	uint64_t count; /* ever added; a note's number is the count with it */
	struct map last; /* pid -> number of its last note */
};

void mapping_log_release(struct mapping_log *log);
int mapping_log_add(struct mapping_log *log, const struct mapping_note *note); /* copies the path. 0 or -ENOMEM */
/*
 * Adds to `maps` what `pid` mapped by itself, up to this time. It had its parent's mappings too, as of *ret_forked_ns,
 * unless *ret_parent is 0. -ENOENT, and nothing is added, when the log does not go back to its exec or fork.
 */
int mapping_log_find(const struct mapping_log *log, pid_t pid, uint64_t time_ns, struct maps *maps, pid_t *ret_parent,
		     uint64_t *ret_forked_ns);
/* Has it become another program since? */
bool mapping_log_has_exec(const struct mapping_log *log, pid_t pid, uint64_t since_ns);

#endif
