/* SPDX-License-Identifier: MIT */
/* Unwind rows out of an ELF file, read and never mapped: one that is truncated meanwhile must not become a SIGBUS. */
#ifndef UNWIND_UNWIND_FILE_H
#define UNWIND_UNWIND_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind_rows.h"

struct unwind_segment { /* of PT_LOAD */
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
	bool executable;
};

struct unwind_file {
	struct vec(struct unwind_segment) segments;
	uint64_t build_id; /* hash of it; 0 = none */
	uint64_t code_start; /* virtual addresses */
	uint64_t code_end;
	uint64_t base; /* virtual address of the rows' pc 0, the same for all copies of a build */
	struct unwind_rows rows; /* none when no table tells; the caller may release them and keep the rest */
};

/*
 * From .eh_frame, and .debug_frame where that tells nothing. Without rows when `only_identify`: then segments and build
 * id alone are read. 0, or -errno and nothing needs a release: -ENOEXEC when it is no ELF file of this architecture,
 * and as unwind_rows_read(). The descriptor stays the caller's, the bytes are needed no longer.
 */
int unwind_file_read(struct unwind_file *file, int fd, bool only_identify);
int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len);
/*
 * Adds what the .debug_frame of the file's debug file tells of code of which the file itself tells nothing. 0, -ENODATA
 * when there is none, or another -errno; the rows are as before then.
 */
int unwind_file_add_debug(struct unwind_file *file, int fd);
/* As unwind_rows_fill_gaps(). */
void unwind_file_fill_gaps(struct unwind_file *file);
void unwind_file_release(struct unwind_file *file);

/* What virtual address the first byte of a mapping of code has. False when it maps none of the file's code. */
bool unwind_file_vaddr(const struct unwind_file *file, uint64_t offset, uint64_t len, uint64_t *ret_vaddr);

#endif
