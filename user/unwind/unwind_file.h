/* SPDX-License-Identifier: MIT */
/* Unwind rows from an ELF file, which is read, never mapped: truncating it must not cause SIGBUS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_reader.h"
#include "unwind/unwind_rows.h"

struct unwind_file {
	struct elf_segments segments;
	uint64_t code_start; /* virtual addresses */
	uint64_t code_end;
	uint64_t base; /* virtual address of the rows' pc 0; the same for all copies of a build */
	struct unwind_rows rows; /* empty if the file has no table; the caller may release them and keep the rest */
};

/*
 * A large file has some 100,000 rows. They are made in several steps, so that the caller can do other work in between:
 * from .eh_frame, then from .debug_frame and by frame pointer (V8) for code that .eh_frame does not describe.
 */
struct unwind_reading;

/*
 * Returns 0, -ENOEXEC if the file is not an ELF file of this architecture, -E2BIG or -ENOMEM; after an error there is
 * nothing to end. The caller owns the descriptor, and keeps it open until unwind_file_step() has returned something
 * other than -EAGAIN.
 */
int unwind_file_begin(struct unwind_reading **ret, int fd);
/* Works until until_ns. Returns 0 when all rows are made, -EAGAIN before that, -E2BIG or -ENOMEM. */
int unwind_file_step(struct unwind_reading *reading, uint64_t until_ns);
/*
 * Call after a step that returned 0. Continues with the .debug_frame of the file's debug file, for code that the file
 * itself does not describe. After a 0, call unwind_file_step() again. Returns -ENODATA if the debug file has none, or
 * another -errno. The caller owns the descriptor and may close it after the call.
 */
int unwind_file_add_debug(struct unwind_reading *reading, int fd);
/* Frees the reading. If the last step returned 0, `ret` gets the file; with `ret` NULL the file is released. */
void unwind_file_end(struct unwind_reading *reading, struct unwind_file *ret);

/* Does all steps at once, without the debug file. `bytes` may be freed after the call. */
int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len);
void unwind_file_release(struct unwind_file *file);

/* The virtual address of the first byte of a mapping. False if the mapping contains none of the file's code. */
bool unwind_file_vaddr(const struct unwind_file *file, uint64_t offset, uint64_t len, uint64_t *ret_vaddr);
