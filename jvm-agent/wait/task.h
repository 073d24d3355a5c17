/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says of a thread of this process in /proc/self/task. No thread is signalled, stopped or woken for it.
 * Not for signal handlers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "duet_record.h"

struct task_sleep {
	uintptr_t pc, sp; /* where it has left user mode; both 0: not known */
	char function[DUET_MAX_STATE_BYTES + 1]; /* the function of the kernel in which it sleeps; "": not known */
};

/* Returns true if the thread sleeps. Returns false if it runs, waits for a CPU, or has ended. */
bool task_sleeps(int tid, struct task_sleep *ret);
/* Stores how long the thread has waited for a CPU so far, in ns. Returns false if the kernel does not say. */
bool task_waited(int tid, uint64_t *ret_ns);
