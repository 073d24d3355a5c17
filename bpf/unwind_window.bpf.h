/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A piece of the thread's stack, read at once: callers' return addresses lie close to each other, and most of what a
 * read costs is the call (on one machine 80 ns for 16 bytes, 96 ns for 512).
 */
#ifndef DUET_UNWIND_WINDOW_BPF_H
#define DUET_UNWIND_WINDOW_BPF_H

#include "duet_types.h"

#define UNWIND_WINDOW_WORDS 256 /* a power of 2 */

#define UNWIND_PAGE_BYTES 4096 /* the smallest that there is */

struct unwind_window {
	u64 at; /* its address. Of one walk only: the thread stands still */
	u64 bytes; /* 0: nothing is there */
	u64 words[UNWIND_WINDOW_WORDS];
};

/* As much as there is: behind the stack there may be nothing. Nonzero when that is not enough. */
static __always_inline int unwind_window_move(struct unwind_window *window, u32 least_bytes, u64 address)
{
	u64 bytes = UNWIND_PAGE_BYTES - (address & (UNWIND_PAGE_BYTES - 1));

	window->bytes = 0;
	window->at = address;
	if (!bpf_probe_read_user(window->words, sizeof(window->words), (const void *)address)) {
		window->bytes = sizeof(window->words);
		return 0;
	}
	if (bytes < least_bytes || bytes >= sizeof(window->words) ||
	    bpf_probe_read_user(window->words, bytes, (const void *)address))
		return -1;
	window->bytes = bytes;
	return 0;
}

/* Words of the stack, a constant number of them. Nonzero when they cannot be read. */
static __always_inline int unwind_window_read(struct unwind_window *window, u64 *to, u32 words, u64 address)
{
	u32 bytes = words * sizeof(u64);
	u64 index;

	if (address % sizeof(u64))
		return bpf_probe_read_user(to, bytes, (const void *)address);
	if ((address - window->at > window->bytes - bytes || window->bytes < bytes) &&
	    unwind_window_move(window, bytes, address))
		return bpf_probe_read_user(to, bytes, (const void *)address);
	index = (address - window->at) / sizeof(u64);
	/* The masks are for the verifier; what is opaque, the compiler cannot find superfluous. */
	__asm__("" : "+r"(index));
#pragma unroll
	for (u32 i = 0; i < words; i++)
		to[i] = window->words[(index + i) & (UNWIND_WINDOW_WORDS - 1)];
	return 0;
}

#endif
