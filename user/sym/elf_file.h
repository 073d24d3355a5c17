/* SPDX-License-Identifier: MIT */
/*
 * The function symbols of one ELF file. The file is read, never mapped: if it is truncated while it is read, there must
 * be no SIGBUS. Its contents are not trusted: sizes are bounded before they are used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_reader.h"
#include "sym/function_starts.h"
#include "sym/symbol_table.h"

#define ELF_IDENTITY_MAX_BUILD_ID 64

/* Identifies the build of an ELF file and the debug file that belongs to it. */
struct elf_identity {
	uint8_t build_id[ELF_IDENTITY_MAX_BUILD_ID];
	size_t build_id_len; /* 0 = none */
	char debuglink[256]; /* file name, "" = none */
	uint32_t debuglink_crc;
};

/* Returns 0, or -EBADMSG for lengths and names that elf_identity_read_fd() does not return. */
int elf_identity_check(const struct elf_identity *identity);
/* Returns 0, or -errno as elf_reader_open(). The descriptor stays the caller's. */
int elf_identity_read_fd(struct elf_identity *identity, int fd);

struct elf_file {
	struct symbol_table symbols; /* by virtual address; names have no version: memcpy, not memcpy@@GLIBC_2.14 */
	struct symbol_table stubs; /* names of code that has no symbol, see stubs_read() */
	struct function_starts function_starts;
	struct elf_segments segments;
	bool is_mini; /* the symbols are of .gnu_debugdata */
	bool has_symtab; /* false: the symbols are from .dynsym, which has exported functions only, or there are none */
	struct elf_identity identity;
};

/* Return 0, or -errno with nothing to release. The descriptor stays the caller's. `bytes` may be freed then. */
int elf_file_read(struct elf_file *file, int fd);
int elf_file_read_memory(struct elf_file *file, void *bytes, size_t len);
/* The file as bytes, which may come from a process that is not trusted. Returns 0, -EBADMSG or -ENOMEM. */
void elf_file_pack(struct buf *buf, const struct elf_file *file);
int elf_file_unpack(struct elf_file *file, const struct buf *bytes);
void elf_file_release(struct elf_file *file);

/* The mangled name of the function at a virtual address, or NULL; owned by the file. As symbol_table_find(). */
const char *elf_file_name(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start);
/* The nameless function's start by unwind information; the address if there is none, or a .symtab. */
uint64_t elf_file_function_start(const struct elf_file *file, uint64_t vaddr);

/*
 * Adds the symbols of "MiniDebugInfo", if there are any, to `file`, which was read from `fd`: a small compressed ELF
 * file inside an ELF file, with the functions that are not exported. In mini_debug.c.
 */
void mini_debug_apply(struct elf_file *file, int fd);

/*
 * Inside sym/ only; in stubs.c. Names code without a symbol that linkers and the C library make: the entries of
 * procedure linkage tables, which are named after the function they jump to (memcpy@plt), and the trampoline to which
 * signal handlers return (__restore_rt). Fills the empty table `stubs` and sorts it. `symbols` are the file's own,
 * sorted; they name the functions to which entries without a name of their own jump. 0 or -ENOMEM.
 */
int stubs_read(struct symbol_table *stubs, struct elf_reader *elf, const struct symbol_table *symbols);
