/* SPDX-License-Identifier: MIT */
/*
 * A process that works on bytes of strangers keeps nothing that they could use: no capability, no name of a file, no
 * network, no other process. It has the descriptors that it was given, and memory and CPU time up to a limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* What a process may do besides: use its memory, read and write open files, know the time, and end. */
enum box_calls {
	BOX_TALK = 1 << 0, /* send and receive through its sockets, and wait for them */
	BOX_OUTPUT = 1 << 1, /* cut open files */
	BOX_PEEK = 1 << 2, /* read the memory of one process with CAP_SYS_PTRACE, and set alarms; Landlock forbids it */
};

struct box_limits {
	uint64_t memory_bytes; /* as memory_limit(); 0: as before */
	pid_t peeked; /* BOX_PEEK: the process whose memory is read */
	uint64_t cpu_ns; /* of the process since its start, up to a second more, then SIGXCPU; 0: as before */
};

/* What this kernel does not have, or does not let this process have. */
enum box_lack {
	BOX_LACKS_SECCOMP = 1 << 0,
	BOX_LACKS_LANDLOCK = 1 << 1,
};

/*
 * Gives everything else up, for good. What is refused fails with EPERM; a system call of another architecture ends the
 * process. Descriptors stay open: close first what is not for the box. `calls`: bits of enum box_calls. Returns 0 or
 * -errno; a wall that the kernel does not have is no error, see box_lacks().
 */
int box_enter(unsigned int calls, const struct box_limits *limits);
/*
 * The same for a process that will run another program, which has to find its libraries: it opens files to read them,
 * writes to none but by its descriptors, and has no network and no other process.
 */
int box_enter_program(void);
/* For who opens files and reads the memory of others, with the rights that he has: no network, signal or program. */
int box_enter_opener(void);
/*
 * For the loader, when all has been started: keeps only these capabilities (RIGHT()), and refuses for good what the
 * loader and its children never do. Returns 0 or -errno; without seccomp it does the first.
 */
int box_narrow(uint64_t rights);
unsigned int box_lacks(void); /* after box_enter(): bits of enum box_lack */
/* Sets the limits of a process of this user, which cannot do so itself any more. Returns 0 or -errno. */
int box_limit(pid_t process, const struct box_limits *limits);

/* Enters a box in a child to see what it lacks here. Returns bits of enum box_lack, or -errno. */
int box_try(void);
void box_describe(unsigned int lacks, struct buf *out); /* appends the walls, and those that are missing */
