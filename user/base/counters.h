/* SPDX-License-Identifier: MIT */
/* The loader's losses so far, by cause. The code that loses something counts it. Not thread-safe. */
#pragma once

#include <stdint.h>

#include "duet_counters.h"

extern uint64_t loader_counters[DUET_LOADER_COUNTER_MAX]; /* indexed by enum duet_loader_counter */
