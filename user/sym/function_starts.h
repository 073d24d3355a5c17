/* SPDX-License-Identifier: MIT */
/*
 * Where the functions of an ELF file start, with or without a name: from the search
 * table of .eh_frame_hdr, which is loaded with the code and so survives strip.
 */
#ifndef SYM_FUNCTION_STARTS_H
#define SYM_FUNCTION_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function_starts { /* zeroed: none known */
	uint64_t base;	  /* virtual address of .eh_frame_hdr */
	int32_t *offsets; /* from base, ascending */
	size_t count;
};

/*
 * The `len` bytes of .eh_frame_hdr, which the file loads at `vaddr`. 0; -ENOTSUP when its
 * encodings are others than what linkers write, -EINVAL when it is damaged, -ENOMEM.
 */
int function_starts_read(struct function_starts *starts, uint64_t vaddr, const void *bytes, size_t len);
void function_starts_release(struct function_starts *starts);

/* The last start at or before the address. False when there is none. */
bool function_starts_find(const struct function_starts *starts, uint64_t vaddr, uint64_t *ret_start);
/* The first start behind the address; UINT64_MAX when there is none. */
uint64_t function_starts_next(const struct function_starts *starts, uint64_t vaddr);

#endif
