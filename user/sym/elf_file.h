/* SPDX-License-Identifier: MIT */
/*
 * The function symbols of one ELF file. Its bytes are read, never mapped: a file
 * that is truncated meanwhile must not become a SIGBUS. Everything in it is
 * hostile: sizes are bounded before they are used.
 */
#ifndef SYM_ELF_FILE_H
#define SYM_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "sym/elf_identity.h"
#include "sym/function_starts.h"
#include "sym/symbol_table.h"

struct elf_segment { /* of PT_LOAD */
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
};

struct elf_file {
	struct symbol_table symbols; /* by virtual address, without versions: memcpy, not memcpy@@GLIBC_2.14 */
	struct symbol_table stubs; /* code that has no symbol but a name, see stubs.h */
	struct function_starts function_starts;
	struct vec(struct elf_segment) segments;
	bool has_symtab; /* else .dynsym at most: exported functions only */
	struct elf_identity identity;
};

/*
 * Both: 0, or -errno and nothing needs a release. The descriptor stays the caller's,
 * the bytes are needed no longer.
 */
int elf_file_read(struct elf_file *file, int fd);
int elf_file_read_memory(struct elf_file *file, void *bytes, size_t len);
void elf_file_release(struct elf_file *file);

/* What has the virtual address, or NULL. Valid as long as the file. */
const char *elf_file_name(const struct elf_file *file, uint64_t vaddr);
/* The virtual address of a file offset, by the program headers. False when no segment holds it. */
bool elf_file_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret_vaddr);
/* Where the nameless function at a virtual address starts; the address itself when that is not known. */
uint64_t elf_file_function_start(const struct elf_file *file, uint64_t vaddr);

#endif
