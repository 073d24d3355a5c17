/* SPDX-License-Identifier: MIT */
/*
 * The ring of a perf event (perf_event_open(2)), into which the kernel writes the kernel frames of each tick. The
 * event's own thread is its only reader. All functions are async-signal-safe on that thread.
 */
#pragma once

#include <stddef.h>

#include "duet_record.h"

struct perf_event_mmap_page;

#define PERF_RING_SAMPLES (PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN) /* the only sample_type that is supported */

/* Kernel frames of one tick, leaf first. */
struct kernel_stack {
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: not known */
	uint32_t depth;
	uint64_t frames[DUET_MAX_STACK];
};

size_t perf_ring_bytes(void); /* to mmap: 8 KiB, of which one page is for records */
/* Takes the oldest tick, none after `until_ns`; without one, the stack is empty. Returns true if there is another. */
bool perf_ring_take(struct perf_event_mmap_page *page, uint64_t until_ns, struct kernel_stack *ret);
void perf_ring_clear(struct perf_event_mmap_page *page);
