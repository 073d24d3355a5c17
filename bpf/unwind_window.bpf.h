/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A window on the thread's stack: a piece that is read at once. Return addresses lie close to each other, and most of
 * the cost of a read is the call itself (on one machine 80 ns for 16 bytes, 96 ns for 512).
 */
#pragma once

#include "duet_types.h"

#define UNWIND_WINDOW_WORDS 256 /* a power of 2 */

#define UNWIND_PAGE_BYTES 4096 /* the smallest page size of any supported kernel */

struct unwind_window {
	u64 at; /* user address of the first word; valid for one walk only, during which the thread does not run */
	u64 bytes; /* number of valid bytes in words; 0: none */
	u64 words[UNWIND_WINDOW_WORDS];
};

/*
 * Moves the window to `address` and fills as much of it as can be read: beyond the end of the stack there may be no
 * memory. Returns nonzero if fewer than `least_bytes` can be read.
 */
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

/* Reads a constant number of words of the stack. Returns nonzero if they cannot be read. */
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
	/* The masks are for the verifier. The asm hides the value, else the compiler would remove them. */
	__asm__("" : "+r"(index));
#pragma unroll
	for (u32 i = 0; i < words; i++)
		to[i] = window->words[(index + i) & (UNWIND_WINDOW_WORDS - 1)];
	return 0;
}
