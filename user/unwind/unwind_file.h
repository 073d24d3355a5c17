/* SPDX-License-Identifier: MIT */
/* Unwind rows from an ELF file. It is read, never mapped: truncating it meanwhile must not cause a SIGBUS. */
#ifndef UNWIND_UNWIND_FILE_H
#define UNWIND_UNWIND_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind_rows.h"

struct unwind_segment { /* a PT_LOAD program header */
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
	bool executable;
};

struct unwind_file {
	struct vec(struct unwind_segment) segments;
	uint64_t code_start; /* virtual addresses */
	uint64_t code_end;
	uint64_t base; /* virtual address of the rows' pc 0; the same for all copies of a build */
	struct unwind_rows rows; /* empty if the file has no table; the caller may release them and keep the rest */
};

/*
 * Both make rows from .eh_frame, and from .debug_frame and framed_add() for code that .eh_frame does not describe. Both
 * return 0 or -errno: -ENOEXEC if it is no ELF file of this architecture, -E2BIG or -ENOMEM; after an error there is
 * nothing to release. The descriptor stays the caller's. `bytes` may be freed after the call.
 */
int unwind_file_read(struct unwind_file *file, int fd);
int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len);
/*
 * Adds rows from the .debug_frame of the file's debug file, for code that the file itself does not describe. Returns 0,
 * -ENODATA if it has none, or another -errno; after an error the rows are as before. The descriptor stays the caller's.
 */
int unwind_file_add_debug(struct unwind_file *file, int fd);
/* As unwind_rows_fill_gaps(). */
void unwind_file_fill_gaps(struct unwind_file *file);
void unwind_file_release(struct unwind_file *file);

/* The virtual address of the first byte of a mapping. False if the mapping contains none of the file's code. */
bool unwind_file_vaddr(const struct unwind_file *file, uint64_t offset, uint64_t len, uint64_t *ret_vaddr);

#endif
