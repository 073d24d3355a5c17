/* SPDX-License-Identifier: MIT */
/* ELF files as far as libelf may see them: what is hostile is refused or bounded before. */
#ifndef SYM_ELF_SECTION_H
#define SYM_ELF_SECTION_H

#include <stddef.h>

#include <gelf.h>

/* Both: 0 and what elf_end() ends, or -errno. The descriptor and the bytes stay the caller's, and needed until then. */
int elf_section_open(Elf **ret, int fd);
int elf_section_open_memory(Elf **ret, void *bytes, size_t len);

/* NULL when there is none of that name. */
Elf_Scn *elf_section_find(Elf *elf, const char *name, GElf_Shdr *ret);
/* NULL for one without bytes, a compressed one, and one that is too large. Good until elf_end(). */
Elf_Data *elf_section_data(Elf_Scn *section, const GElf_Shdr *shdr);

#endif
