/* SPDX-License-Identifier: GPL-2.0-only */
/* The map of the program for allocations. */
#ifndef DUET_TLAB_BPF_H
#define DUET_TLAB_BPF_H

#include "core.bpf.h"

/* What samples account for of what a thread allocates. A position is the number of bytes that it has allocated. */
struct tlab_thread {
	u64 accounted; /* position up to which samples account for what the thread has allocated */
	u64 carried; /* bytes before it that the next object which ends a buffer accounts for too */
	u64 began; /* position at which its buffer began, with the bytes of objects outside of it since */
	u64 bytes; /* size of the buffer; 0: not known */
	u64 room; /* of the buffer, behind the object that began it */
	u64 left; /* what was left of it when an object did not fit, and it was kept; 0: all objects have fit */
	u64 small; /* bytes of objects of at most small_most bytes that a sample of such an object has to account for */
	u64 small_most;
};

/* By tid. The loader sets the size. */
struct duet_tlab_threads_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tlab_thread);
};
extern struct duet_tlab_threads_map tlab_threads SEC(".maps");

#endif
