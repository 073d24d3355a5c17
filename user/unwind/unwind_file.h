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
 * Makes all rows: from .eh_frame, then from .debug_frame and by frame pointer (V8) for code that .eh_frame does not
 * describe. Returns 0, -ENOEXEC if the file is not an ELF file of this architecture, -E2BIG or -ENOMEM. The descriptor
 * stays the caller's, and `bytes` may be freed after the call.
 */
int unwind_file_read(struct unwind_file *file, int fd);
int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len);
void unwind_file_release(struct unwind_file *file);
/* The rows of .debug_frame alone, in the debug file of a file with this code. Returns as the others, or -ENODATA. */
int unwind_file_read_debug(struct unwind_rows *ret, int fd, uint64_t code_start, uint64_t code_end);

/* The file as bytes, which may come from a process that is not trusted. Release the file in any case. */
void unwind_file_pack(struct buf *buf, const struct unwind_file *file);
void unwind_file_unpack(struct parts *parts, struct unwind_file *ret);

/* The virtual address of the first byte of a mapping. False if the mapping contains none of the file's code. */
bool unwind_file_vaddr(const struct unwind_file *file, uint64_t offset, uint64_t len, uint64_t *ret_vaddr);
