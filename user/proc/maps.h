/* SPDX-License-Identifier: MIT */
/* A process's executable mappings, sorted by address, from /proc/PID/maps. */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "base/vec.h"
#include "proc/allowance.h"

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
int maps_read(struct maps *maps, const struct charge *charge); /* returns 0, or -errno with `maps` unchanged */
/* The same; proc_fd is /proc/PID, so that a reused pid cannot change which process is read. */
int maps_read_at(struct maps *maps, const struct charge *charge, int proc_fd);
/*
 * For a helper (proc/helper.h): finds the first mapping of a process at or after *at whose name begins with one of
 * these, and sets *at to its address. `proc_fd` is /proc/PID. Returns 0, -ENOENT, or another -errno.
 */
int maps_find_named(int proc_fd, const char *const *names, size_t count, uint64_t *at);
/* Adds a copy of `mapping`, unless it overlaps an existing one. Returns 0 or -ENOMEM. */
int maps_add(struct maps *maps, const struct mapping *mapping);
void maps_release(struct maps *maps);
bool maps_equal(const struct maps *a, const struct maps *b);
/* returns NULL if no mapping has the address */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);
/* Returns the first mapping whose file name (after the last '/') is `name`, or NULL. */
const struct mapping *maps_find_file(const struct maps *maps, const char *name);
/* musl's dynamic linker is a file of the process. Its name is the process's own word, and matters to it alone. */
bool maps_have_musl(const struct maps *maps);
const struct mapping *maps_libjvm(const struct maps *maps); /* NULL: the process is not a JVM */

#define MAPPING_LOG_NOTES 8192 /* about one second of 2,000 short processes per second with four mappings each */
/* most mappings of one program: that bounds the time that it can cost, and the room that it takes from others */
#define MAPPING_LOG_MAPPINGS 512

enum mapping_note_kind {
	MAPPING_NOTE_MAPPED,
	MAPPING_NOTE_EXEC, /* an exec: the process has none of its earlier mappings any more */
	MAPPING_NOTE_FORKED, /* a fork: the child has the mappings of `parent` */
};

struct mapping_note {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t previous; /* set by the log: number of the previous note of this process; 0 = none */
	uint32_t mapped; /* likewise: how many mappings in a row it has noted, with this one */
	pid_t pid;
	pid_t parent; /* for MAPPING_NOTE_FORKED */
	enum mapping_note_kind kind;
	struct mapping mapping; /* for MAPPING_NOTE_MAPPED; executable */
};

/*
 * A log of the programs and files that processes mapped recently, as the kernel reported them. A process that lives for
 * a millisecond is no longer in /proc when its sample is read, but the log has its mappings. It holds a fixed number of
 * notes and drops the oldest first. All zero is an empty log.
 */
struct mapping_log {
	struct mapping_note *notes; /* a ring, owned, with the paths; NULL before the first note */
	uint64_t count; /* notes added so far; a note's number is this count after it was added */
	struct map last; /* pid -> number of its last note */
};

void mapping_log_release(struct mapping_log *log);
/* Copies the path. Does nothing if the program has enough notes, unless it maps libjvm.so. Returns 0 or -ENOMEM. */
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
/* Returns the process that forked this one, or 0 if that is not in the log. */
pid_t mapping_log_parent(const struct mapping_log *log, pid_t pid, uint64_t time_ns);
/* Returns true if the process has called exec since then. */
bool mapping_log_has_exec(const struct mapping_log *log, pid_t pid, uint64_t since_ns);
