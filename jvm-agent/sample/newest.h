/* SPDX-License-Identifier: MIT */
/*
 * The time of each thread's newest sample, CLOCK_MONOTONIC in ns, which the program reads to find out whether a thread
 * was sampled while it did something. A number stays where it is for as long as the process lives. It begins with 0,
 * and anew with each recording. Threads whose tids are the same modulo DUET_NEWEST_SLOTS share one.
 */
#pragma once

#include <stdint.h>

#include "duet_agent.h"
#include "duet_config.h"

/* Returns the calling thread's number, or NULL: there is no memory. */
uint64_t *newest_here(void);
/* A recording begins. `fd`: with DUET_NEWEST_SHARED, the array that BPF writes; else -1. It stays the caller's. */
void newest_begin(enum duet_newest how, int fd);
void newest_end(void);
/* A sample was taken of this thread, by this process. Async-signal-safe. */
void newest_note(uint32_t tid, uint64_t time_ns);
