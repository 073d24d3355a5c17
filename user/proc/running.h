/* SPDX-License-Identifier: MIT */
/* Which of the machine's processes run: those whose CPU time grows from one look to the next. */
#ifndef PROC_RUNNING_H
#define PROC_RUNNING_H

#include <stddef.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vec.h"

struct running { /* all zero: nothing noted */
	struct map ticks; /* pid -> 1 + CPU time of the process, in the kernel's ticks */
};

/* Notes the CPU time of all processes but kernel threads. Without memory, fewer are noted. */
void running_note(struct running *running);
typedef void (*running_visit)(void *context, pid_t pid);
/* Calls `visit` for the noted processes that have run since, or run now. */
void running_each(const struct running *running, running_visit visit, void *context);
void running_release(struct running *running);

#endif
