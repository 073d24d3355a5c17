/* SPDX-License-Identifier: MIT */
#include "base/counters.h"

uint64_t loader_counters[DUET_LOADER_COUNTER_MAX];
