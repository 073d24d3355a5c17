/* SPDX-License-Identifier: MIT */
/* Which of the machine's processes run: those whose CPU time grows from one look to the next. */
#pragma once

#include <sys/types.h>

#include "base/map.h"

struct busy { /* all zero: nothing noted */
	struct map ticks; /* pid -> 1 + CPU time of the process, in the kernel's ticks */
};

/* Notes the CPU time of all processes but kernel threads. Without memory, fewer are noted. */
void busy_note(struct busy *busy);
typedef void (*busy_visit)(void *context, pid_t pid);
/* Calls `visit` for the noted processes that have run since, or run now. */
void busy_each(const struct busy *busy, busy_visit visit, void *context);
void busy_release(struct busy *busy);
