/* SPDX-License-Identifier: MIT */
/* The events that arguments ask for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "recorder/arguments.h"

/* Appends the list for `duet record -e`. Sets *ret_engine to the value for --engine. Returns 0, or -EINVAL with why. */
int asprof_arguments_events(const struct asprof_arguments *arguments, struct buf *ret_list, const char **ret_engine,
			    struct buf *why);
/* Returns the period after which each thread has a sample of wall-clock time. */
uint64_t asprof_arguments_wall_ns(const struct asprof_arguments *arguments);
/* Returns how often the machine's processes are looked at; 0: never. */
uint64_t asprof_arguments_proc_ns(const struct asprof_arguments *arguments);
/* Returns true if the main event is no event that is known. */
bool asprof_arguments_are_unknown(const struct asprof_arguments *arguments);
/* Returns true if it is none, but may be a function of the process: A::b. */
bool asprof_arguments_is_symbol(const struct asprof_arguments *arguments);
/* Returns what async-profiler calls the source of the main event's samples. Static text. */
const char *asprof_arguments_source(const struct asprof_arguments *arguments);
/* Returns true if the main event is counted by perf, which may refuse it or lack it on this machine. */
bool asprof_arguments_need_perf(const struct asprof_arguments *arguments);
