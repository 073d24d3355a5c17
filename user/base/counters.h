/* SPDX-License-Identifier: MIT */
/*
 * What the loader has lost so far, by cause: one array for the process, as BPF and each agent have one. Counted where
 * it is lost. Not for threads.
 */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stdint.h>

#include "duet_counters.h"

extern uint64_t loader_counters[DUET_LOADER_COUNTER_MAX]; /* indexed by enum duet_loader_counter */

#endif
