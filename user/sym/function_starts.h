/* SPDX-License-Identifier: MIT */
/*
 * Where the functions of an ELF file are, with or without a name. Their starts come from the search table of
 * .eh_frame_hdr, their sizes from .eh_frame. Both are loaded with the code and therefore survive strip.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parts.h"

#define FUNCTION_STARTS_MAX_BYTES (64u << 20) /* of .eh_frame_hdr: 8 million functions */

struct function_starts { /* all zero: none known */
	uint64_t base;	  /* virtual address of .eh_frame_hdr */
	int32_t *offsets; /* from base, ascending */
	uint32_t *sizes; /* of the same functions, in bytes; 0: not known. NULL until function_starts_measure() */
	size_t count;
};

/*
 * Reads the `len` bytes of .eh_frame_hdr, which the file loads at `vaddr`. Returns 0, -ENOTSUP for encodings that
 * linkers do not write, -EINVAL if it is damaged, or -ENOMEM. `bytes` may be freed after the call.
 */
int function_starts_read(struct function_starts *starts, uint64_t vaddr, const void *bytes, size_t len);
/* Reads the sizes from the `len` bytes of .eh_frame, which the file loads at `vaddr`. Returns 0 or -ENOMEM. */
int function_starts_measure(struct function_starts *starts, uint64_t vaddr, const void *bytes, size_t len);
void function_starts_pack(struct buf *buf, const struct function_starts *starts);
/* Reads what function_starts_pack() wrote. Release them in any case. */
void function_starts_unpack(struct parts *parts, struct function_starts *ret);
void function_starts_release(struct function_starts *starts);

/* Finds the start of the function that holds the address. False if there is none, or if the sizes are not known. */
bool function_starts_find(const struct function_starts *starts, uint64_t vaddr, uint64_t *ret_start);
/* The first start after the address, or UINT64_MAX. */
uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr);
