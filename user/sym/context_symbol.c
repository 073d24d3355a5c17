/* SPDX-License-Identifier: MIT */
#include "sym/context_symbol.h"

#include <errno.h>
#include <string.h>

#define MAX_SEGMENTS 256

/* What both architectures call by different names. */
#if defined(__x86_64__)
#define RELOCATION_DESCRIPTOR R_X86_64_TLSDESC
#define RELOCATION_MODULE R_X86_64_DTPMOD64
#define RELOCATION_DISTANCE R_X86_64_TPOFF64
#else
#define RELOCATION_DESCRIPTOR R_AARCH64_TLSDESC
#define RELOCATION_MODULE R_AARCH64_TLS_DTPMOD
#define RELOCATION_DISTANCE R_AARCH64_TLS_TPREL
#endif

/* Finds the first program header of this type. */
static bool find_segment(const struct elf_reader *reader, uint32_t type, GElf_Phdr *ret)
{
	size_t count;

	if (elf_getphdrnum(reader->elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++)
		if (gelf_getphdr(reader->elf, (int)i, ret) && ret->p_type == type)
			return true;
	return false;
}

/* Finds the first section of this type. */
static Elf_Scn *find_section(const struct elf_reader *reader, uint32_t type, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, ret) && ret->sh_type == type)
			return section;
	return NULL;
}

static bool is_ours(const Elf_Data *names, const GElf_Sym *symbol)
{
	return GELF_ST_TYPE(symbol->st_info) == STT_TLS && symbol->st_name < names->d_size &&
	       names->d_size - symbol->st_name >= sizeof(DUET_CONTEXT_SYMBOL) &&
	       !memcmp((const char *)names->d_buf + symbol->st_name, DUET_CONTEXT_SYMBOL, sizeof(DUET_CONTEXT_SYMBOL));
}

/* Returns the symbol's index in .dynsym; 0: it is not there, or only used there. */
static size_t find_symbol(struct elf_reader *reader, GElf_Sym *ret)
{
	GElf_Shdr shdr, names_shdr;
	Elf_Scn *section = find_section(reader, SHT_DYNSYM, &shdr);
	Elf_Scn *names_section = section ? elf_getscn(reader->elf, shdr.sh_link) : NULL;
	Elf_Data *symbols, *names;

	if (!names_section || !gelf_getshdr(names_section, &names_shdr) || names_shdr.sh_type != SHT_STRTAB)
		return 0;
	symbols = elf_reader_section(reader, section, &shdr);
	names = symbols ? elf_reader_section(reader, names_section, &names_shdr) : NULL;
	for (int i = 1; names && gelf_getsym(symbols, i, ret); i++)
		if (is_ours(names, ret))
			return ret->st_shndx == SHN_UNDEF ? 0 : (size_t)i;
	return 0;
}

static enum duet_context_place place_of(uint64_t relocation)
{
	switch (relocation) {
	case RELOCATION_DESCRIPTOR:
		return DUET_CONTEXT_DESCRIPTOR;
	case RELOCATION_MODULE:
		return DUET_CONTEXT_INDEX;
	case RELOCATION_DISTANCE:
		return DUET_CONTEXT_DISTANCE;
	default:
		return DUET_CONTEXT_NOWHERE;
	}
}

static bool find_in_section(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr, size_t symbol,
			    struct duet_context_source *ret)
{
	Elf_Data *data = elf_reader_section(reader, section, shdr);
	GElf_Rela relocation;

	for (int i = 0; data && gelf_getrela(data, i, &relocation); i++) {
		enum duet_context_place place = place_of(GELF_R_TYPE(relocation.r_info));

		if (GELF_R_SYM(relocation.r_info) != symbol || place == DUET_CONTEXT_NOWHERE)
			continue;
		*ret = (struct duet_context_source){.at = relocation.r_offset, .place = place};
		return true;
	}
	return false;
}

static bool find_relocation(struct elf_reader *reader, size_t symbol, struct duet_context_source *ret)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_RELA &&
		    find_in_section(reader, section, &shdr, symbol, ret))
			return true;
	return false;
}

/* In an executable, the linker has put the variable at a distance that it knows: code needs no relocation. */
static bool find_fixed(const struct elf_reader *reader, const GElf_Phdr *tls, const GElf_Sym *symbol,
		       struct duet_context_source *ret)
{
	uint64_t align = tls->p_align ? tls->p_align : 1;
	GElf_Phdr interpreter;
	GElf_Ehdr head;

	if (!gelf_getehdr(reader->elf, &head) || align & (align - 1) || tls->p_memsz >= DUET_CONTEXT_DISTANCES ||
	    symbol->st_value >= tls->p_memsz)
		return false;
	if (head.e_type != ET_EXEC && !find_segment(reader, PT_INTERP, &interpreter))
		return false;
	*ret = (struct duet_context_source){.place = DUET_CONTEXT_FIXED};
#if defined(__x86_64__)
	/* the block ends at the thread pointer, which is aligned as it needs */
	ret->at = symbol->st_value - ((tls->p_memsz + align - 1) & ~(align - 1));
#else
	/* it begins after two words, aligned */
	ret->at = symbol->st_value + ((16 + align - 1) & ~(align - 1));
#endif
	return true;
}

int context_symbol_find(struct elf_reader *reader, struct duet_context_source *ret)
{
	GElf_Sym symbol;
	GElf_Phdr tls;
	size_t index = find_segment(reader, PT_TLS, &tls) ? find_symbol(reader, &symbol) : 0;

	if (index && (find_relocation(reader, index, ret) || find_fixed(reader, &tls, &symbol, ret)))
		return 0;
	return -ENOENT;
}
