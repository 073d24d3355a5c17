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
 * A large file has some 100,000 rows. They are made a part at a time, so that the caller can do other things between:
 * from .eh_frame, and from .debug_frame and framed.h for code that .eh_frame does not describe.
 */
struct unwind_reading;

/*
 * Returns 0, -ENOEXEC if it is no ELF file of this architecture, -E2BIG or -ENOMEM; after an error there is nothing to
 * end. The descriptor stays the caller's, who keeps it open until unwind_file_step() has returned something else than
 * -EAGAIN.
 */
int unwind_file_begin(struct unwind_reading **ret, int fd);
/* Works until that time. Returns 0 when all rows are made, -EAGAIN before, -E2BIG or -ENOMEM. */
int unwind_file_step(struct unwind_reading *reading, uint64_t until_ns);
/*
 * Call after a step that returned 0: goes on with the .debug_frame of the file's debug file, for code that the file
 * itself does not describe. After a 0 step again; -ENODATA if it has none, or another -errno. The descriptor stays the
 * caller's and may be closed after the call.
 */
int unwind_file_add_debug(struct unwind_reading *reading, int fd);
/* Frees the reading. `ret` gets the file if the last step returned 0; NULL: the file is released. */
void unwind_file_end(struct unwind_reading *reading, struct unwind_file *ret);

/* Both do all of that at once, but for the debug file. `bytes` may be freed after the call. */
int unwind_file_read(struct unwind_file *file, int fd);
int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len);
/* As unwind_rows_fill_gaps(). */
void unwind_file_fill_gaps(struct unwind_file *file);
void unwind_file_release(struct unwind_file *file);

/* The virtual address of the first byte of a mapping. False if the mapping contains none of the file's code. */
bool unwind_file_vaddr(const struct unwind_file *file, uint64_t offset, uint64_t len, uint64_t *ret_vaddr);

#endif
