/* SPDX-License-Identifier: MIT */
/*
 * The start addresses of the functions of an ELF file, with or without a name. They come from the search table of
 * .eh_frame_hdr, which is loaded with the code and therefore survives strip.
 */
#ifndef SYM_FUNCTION_STARTS_H
#define SYM_FUNCTION_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function_starts { /* all zero: none known */
	uint64_t base;	  /* virtual address of .eh_frame_hdr */
	int32_t *offsets; /* from base, ascending */
	size_t count;
};

/*
 * Reads the `len` bytes of .eh_frame_hdr, which the file loads at `vaddr`. Returns 0, -ENOTSUP for encodings that
 * linkers do not write, -EINVAL if it is damaged, or -ENOMEM. `bytes` may be freed after the call.
 */
int function_starts_read(struct function_starts *starts, uint64_t vaddr, const void *bytes, size_t len);
void function_starts_release(struct function_starts *starts);

/* Finds the last start at or before the address. False if there is none. */
bool function_starts_find(const struct function_starts *starts, uint64_t vaddr, uint64_t *ret_start);
/* The first start after the address, or UINT64_MAX. */
uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr);

#endif
