/* SPDX-License-Identifier: MIT */
/*
 * Reads ELF files through libelf. Malformed headers are refused before libelf sees them. Each file has one budget of
 * memory for everything that is read or inflated from it: a file of a few kilobytes can have many sections that all
 * point to one hole, and libelf keeps what it has read until the file is closed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

#include "base/vec.h"

#define ELF_READER_MAX_BYTES (256u << 20)
#define ELF_READER_MAX_SEGMENTS 256

struct elf_segment { /* a PT_LOAD program header */
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
	uint32_t is_code;
};
struct elf_segments vec(struct elf_segment);
/* Converts an offset in the file to an address, or the opposite. False if no segment contains it. */
bool elf_segments_vaddr(const struct elf_segments *segments, uint64_t offset, uint64_t *ret_vaddr);
bool elf_segments_offset(const struct elf_segments *segments, uint64_t vaddr, uint64_t *ret_offset);
/* Returns true if a segment of code contains the offset in the file. */
bool elf_segments_is_code(const struct elf_segments *segments, uint64_t offset);

struct elf_reader {
	Elf *elf;
	size_t left; /* bytes of memory that may still be used for this file */
	int fd; /* -1 for a file in memory */
	const char *image; /* a file in memory; else NULL */
	size_t image_len;
};

/* Both return 0 or -errno. The caller keeps descriptor or bytes until elf_reader_close(), and owns them. */
int elf_reader_open(struct elf_reader *ret, int fd);
int elf_reader_open_memory(struct elf_reader *ret, void *bytes, size_t len);
void elf_reader_close(struct elf_reader *reader);

/* Takes `bytes` from the budget; call before allocating memory for the file's contents. False: it is too small. */
bool elf_reader_take(struct elf_reader *reader, size_t bytes);

/* Returns the section's name, or "" when it has none or it cannot be read. */
const char *elf_reader_name(const struct elf_reader *reader, const GElf_Shdr *shdr);
/* Returns NULL when there is no section of that name with contents. */
Elf_Scn *elf_reader_find(const struct elf_reader *reader, const char *name, GElf_Shdr *ret);
/* The same for the first section of a type. */
Elf_Scn *elf_reader_find_type(const struct elf_reader *reader, uint32_t type, GElf_Shdr *ret);
/* Goes through the program headers, from *at = 0 on. Returns false at the end. */
bool elf_reader_segment(const struct elf_reader *reader, size_t *at, GElf_Phdr *ret);
/* Appends all PT_LOADs, and finds .eh_frame_hdr, which may be missing. Returns 0 or -ENOMEM. */
int elf_reader_segments(const struct elf_reader *reader, struct elf_segments *list, GElf_Phdr *ret_eh_frame_hdr);
/* NULL if it has no contents, is compressed, or the budget is too small. Valid until elf_reader_close(). */
Elf_Data *elf_reader_section(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr);
/* Returns the symbols of a table, and their names; NULL as above, or if the names do not end with a NUL. */
Elf_Data *elf_reader_symbols(struct elf_reader *reader, Elf_Scn *table, const GElf_Shdr *shdr, Elf_Data **ret_names);
/* Returns a symbol's name; "" if it has none. It may be very long, and many symbols may share it. */
const char *elf_reader_symbol_name(const Elf_Data *names, const GElf_Sym *symbol);
/* As elf_reader_section(), for a range of the file. Only for few: libelf keeps them all in one list. */
Elf_Data *elf_reader_chunk(struct elf_reader *reader, uint64_t offset, uint64_t bytes, Elf_Type type);
/* Copies a range of the file, of which nothing is kept. Returns the number of bytes copied: fewer at the file's end. */
size_t elf_reader_copy(const struct elf_reader *reader, uint64_t offset, void *to, size_t bytes);
/* Like elf_reader_section(), but inflates a compressed section, to at most `max_bytes`. */
Elf_Data *elf_reader_inflated(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr, size_t max_bytes);
