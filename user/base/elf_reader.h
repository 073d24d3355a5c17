/* SPDX-License-Identifier: MIT */
/*
 * Reads ELF files through libelf. Malformed headers are refused before libelf sees them. Each file has one budget of
 * memory for everything that is read or inflated from it: a file of a few kilobytes can have many sections that all
 * point to one hole, and libelf keeps what it has read until the file is closed.
 */
#ifndef BASE_ELF_READER_H
#define BASE_ELF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

#define ELF_READER_MAX_BYTES (256u << 20)

struct elf_reader {
	Elf *elf;
	size_t left; /* bytes that may still be made of the file */
};

/*
 * Both: 0 and what elf_reader_close() ends, or -errno. The descriptor and the bytes stay the caller's, and needed until
 * then.
 */
int elf_reader_open(struct elf_reader *ret, int fd);
int elf_reader_open_memory(struct elf_reader *ret, void *bytes, size_t len);
void elf_reader_close(struct elf_reader *reader);

/* Before memory is taken for what the file says. False: there is no more for it. */
bool elf_reader_take(struct elf_reader *reader, size_t bytes);

/* "" when it has none, or none that can be read. */
const char *elf_reader_name(const struct elf_reader *reader, const GElf_Shdr *shdr);
/* NULL when there is none of that name, or only one without bytes. */
Elf_Scn *elf_reader_find(const struct elf_reader *reader, const char *name, GElf_Shdr *ret);
/* NULL for one without bytes, a compressed one, and where the budget has no room. Good until elf_reader_close(). */
Elf_Data *elf_reader_section(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr);
/* The same for bytes by their place in the file. */
Elf_Data *elf_reader_chunk(struct elf_reader *reader, uint64_t offset, uint64_t bytes, Elf_Type type);
/* As elf_reader_section(), of a compressed one too: what is in it. */
Elf_Data *elf_reader_inflated(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr, size_t max_bytes);

#endif
