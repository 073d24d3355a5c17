/* SPDX-License-Identifier: MIT */
#include "sym/elf_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/demangle.h"

#define MAX_SLOTS (1u << 18)
#define MAX_TABLE_BYTES (4u << 20) /* the largest known tables have some ten thousand entries of 16 bytes */
#define MAX_EH_FRAME_BYTES (16u << 20) /* libc's has 0.1 MB, that of static programs a few MB */
#define X86_ENTRY_BYTES 16
#define X86_JUMP_BYTES 6
/* A trampoline is two instructions, 9 bytes; unwinders also look up the byte before it. */
#define MAX_TRAMPOLINE_BYTES 16

struct slot { /* a word of the global offset table */
	uint64_t address;
	uint64_t resolver; /* address of the code that chooses the function when the program starts (IFUNC), or 0 */
	uint32_t symbol;
};

struct reading {
	struct elf_reader *elf;
	uint16_t machine;
	const struct symbol_table *known;
	Elf_Data *symbols; /* .dynsym; NULL if there is none */
	Elf_Data *names;
	Elf_Data *lazy; /* .rela.plt */
	struct vec(struct slot) slots;
	struct symbol_table *stubs;
};

/* ---- the slots, through which entries of linkage tables jump ---- */

static bool to_slot(const struct reading *reading, const GElf_Rela *rela, struct slot *ret)
{
	static const uint64_t x86[] = {R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
	static const uint64_t arm64[] = {R_AARCH64_IRELATIVE, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
	const uint64_t *types = reading->machine == EM_X86_64 ? x86 : arm64;
	uint64_t type = GELF_R_TYPE(rela->r_info);

	*ret = (struct slot){.address = rela->r_offset, .symbol = (uint32_t)GELF_R_SYM(rela->r_info)};
	if (type == types[0])
		ret->resolver = (uint64_t)rela->r_addend;
	return ret->resolver || (ret->symbol && (type == types[1] || type == types[2]));
}

/* Reads the relocations that refer to .dynsym or, in static programs, to no symbol table. */
static int read_relocations(struct reading *reading, size_t dynsym)
{
	Elf_Scn *section = NULL;
	struct slot slot;
	GElf_Shdr shdr;
	GElf_Rela rela;
	int err = 0;

	while (!err && (section = elf_nextscn(reading->elf->elf, section))) {
		bool is_one = gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_RELA &&
			      (shdr.sh_link == dynsym || !shdr.sh_link);
		Elf_Data *data = is_one ? elf_reader_section(reading->elf, section, &shdr) : NULL;

		for (int i = 0; data && !err && reading->slots.len < MAX_SLOTS && gelf_getrela(data, i, &rela); i++)
			if (to_slot(reading, &rela, &slot))
				err = vec_push(&reading->slots, slot);
	}
	if (reading->slots.len)
		qsort(reading->slots.items, reading->slots.len, sizeof(struct slot), vec_by_u64);
	section = elf_reader_find(reading->elf, ".rela.plt", &shdr);
	if (section && shdr.sh_type == SHT_RELA)
		reading->lazy = elf_reader_section(reading->elf, section, &shdr);
	return err;
}

/* Returns the section's index, or 0 if there is none. */
static size_t read_dynsym(struct reading *reading)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find_type(reading->elf, SHT_DYNSYM, &shdr);

	if (!section)
		return 0;
	reading->symbols = elf_reader_symbols(reading->elf, section, &shdr, &reading->names);
	return elf_ndxscn(section);
}

static const struct slot *find_slot(const struct reading *reading, uint64_t address)
{
	return reading->slots.len ? bsearch(&address, reading->slots.items, reading->slots.len, sizeof(struct slot),
					    vec_by_u64)
				  : NULL;
}

/* The name of the function to which a slot leads; NULL or "": not known. */
static const char *slot_name(const struct reading *reading, const struct slot *slot)
{
	GElf_Sym symbol;

	if (slot->resolver)
		return symbol_table_find(reading->known, slot->resolver, NULL);
	if (!reading->symbols || slot->symbol > INT32_MAX ||
	    !gelf_getsym(reading->symbols, (int)slot->symbol, &symbol))
		return NULL;
	return elf_reader_symbol_name(reading->names, &symbol);
}

/* A size of 0 means: up to the next entry. */
static int add_entry(struct reading *reading, const struct slot *slot, uint64_t start, uint64_t size, uint64_t limit)
{
	const int most = (int)(SYMBOL_TABLE_MAX_NAME + 1 - sizeof(DEMANGLE_PLT_SUFFIX)); /* bytes of the name */
	const char *name = slot_name(reading, slot);
	char text[SYMBOL_TABLE_MAX_NAME + 1];

	if (!name || !*name)
		return 0;
	if (!elf_reader_take(reading->elf, sizeof(text)))
		return -EFBIG;
	snprintf(text, sizeof(text), "%.*s" DEMANGLE_PLT_SUFFIX, most, name);
	return symbol_table_add(reading->stubs, start, size, limit, SYMBOL_GLOBAL, text, strlen(text));
}

/*
 * True for the lazy entry of programs whose entries begin with ENDBR64. It does not jump through the slot; it pushes
 * the number of its relocation, which names the slot.
 */
static bool pushes_number(const struct reading *reading, const uint8_t *code, struct slot *ret)
{
	static const uint8_t endbr64_push[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68};
	GElf_Rela rela;
	int32_t number;

	if (!reading->lazy || memcmp(code, endbr64_push, sizeof(endbr64_push)))
		return false;
	memcpy(&number, code + sizeof(endbr64_push), sizeof(number));
	return number >= 0 && gelf_getrela(reading->lazy, number, &rela) && to_slot(reading, &rela, ret);
}

/* Entries of different linkers have only the jump through the slot in common: jmp *distance(%rip). */
static const struct slot *x86_jump(const struct reading *reading, const uint8_t *code, size_t len, uint64_t vaddr)
{
	const struct slot *slot = NULL;
	int32_t distance;

	for (size_t at = 0; !slot && at + X86_JUMP_BYTES <= len; at++) {
		if (code[at] != 0xff || code[at + 1] != 0x25)
			continue;
		memcpy(&distance, code + at + 2, sizeof(distance));
		slot = find_slot(reading, vaddr + at + X86_JUMP_BYTES + (uint64_t)(int64_t)distance);
	}
	return slot;
}

static int read_x86(struct reading *reading, const uint8_t *code, size_t len, const GElf_Shdr *shdr)
{
	size_t bytes = shdr->sh_entsize == X86_ENTRY_BYTES / 2 ? X86_ENTRY_BYTES / 2 : X86_ENTRY_BYTES;
	int err = 0;

	for (size_t at = 0; !err && at + bytes <= len; at += bytes) {
		uint64_t vaddr = shdr->sh_addr + at;
		const struct slot *slot = x86_jump(reading, code + at, bytes, vaddr);
		struct slot pushed;

		if (!slot && bytes == X86_ENTRY_BYTES && pushes_number(reading, code + at, &pushed))
			slot = &pushed;
		if (slot)
			err = add_entry(reading, slot, vaddr, bytes, 0);
	}
	return err;
}

/* Entries have adrp x16, page; ldr x17, [x16, offset]. With branch target identification, bti c comes before them. */
static int read_arm64(struct reading *reading, const uint8_t *code, size_t len, const GElf_Shdr *shdr)
{
	uint32_t before = 0, adrp, ldr;
	int err = 0;

	for (size_t at = 0; !err && at + 8 <= len; at += 4, before = adrp) {
		uint64_t vaddr = shdr->sh_addr + at, pages;
		const struct slot *slot;

		memcpy(&adrp, code + at, sizeof(adrp));
		memcpy(&ldr, code + at + 4, sizeof(ldr));
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		pages = (uint64_t)((int64_t)((uint64_t)(adrp & 0x00ffffe0) << 40) >> 43) & ~3ull;
		pages |= adrp >> 29 & 3;
		slot = find_slot(reading, (vaddr & ~0xfffull) + (pages << 12) + (ldr >> 10 & 0xfff) * 8);
		if (before == 0xd503245f)
			vaddr -= 4;
		if (slot)
			err = add_entry(reading, slot, vaddr, 0, shdr->sh_addr + len - vaddr);
	}
	return err;
}

static int read_linkage_tables(struct reading *reading)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;
	Elf_Data *data;
	const char *name;
	int err = 0;

	while (!err && (section = elf_nextscn(reading->elf->elf, section))) {
		if (!gelf_getshdr(section, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) || shdr.sh_size > MAX_TABLE_BYTES)
			continue;
		name = elf_reader_name(reading->elf, &shdr);
		if ((strncmp(name, ".plt", 4) && strcmp(name, ".iplt")) ||
		    !(data = elf_reader_section(reading->elf, section, &shdr)))
			continue;
		err = reading->machine == EM_X86_64 ? read_x86(reading, data->d_buf, data->d_size, &shdr)
						    : read_arm64(reading, data->d_buf, data->d_size, &shdr);
	}
	return err;
}

/* This is glibc's trampoline on x86-64. That of arm64 is in the vdso and has a symbol. */
struct frame_entry { /* .eh_frame */
	uint32_t len;
	uint32_t id; /* 0: a CIE, which holds what functions have in common; else the distance back to the CIE */
	uint8_t body[10];
};

/* Version 1, augmentation "zRS" (S: signal), alignments 1 and -8, return address 16, 4 relative bytes. */
static const uint8_t signal_cie[sizeof(((struct frame_entry *)0)->body)] = {
	1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b};

static int add_trampoline(struct reading *reading, const struct frame_entry *entry, uint64_t vaddr)
{
	static const char name[] = "__restore_rt";
	int32_t distance;
	uint32_t bytes;

	memcpy(&distance, entry->body, sizeof(distance));
	memcpy(&bytes, entry->body + 4, sizeof(bytes));
	if (!bytes || bytes > MAX_TRAMPOLINE_BYTES)
		return 0;
	return symbol_table_add(reading->stubs, vaddr + (uint64_t)(int64_t)distance, bytes, 0, SYMBOL_GLOBAL, name,
				strlen(name));
}

static int read_trampolines(struct reading *reading)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find(reading->elf, ".eh_frame", &shdr);
	bool is_read = section && shdr.sh_size <= MAX_EH_FRAME_BYTES;
	Elf_Data *data = is_read ? elf_reader_section(reading->elf, section, &shdr) : NULL;
	const uint8_t *bytes = data ? data->d_buf : NULL;
	size_t len = data ? data->d_size : 0, cie = len;
	struct frame_entry entry;
	int err = 0;

	/* An entry of length 0 is the last. We also stop at 0xffffffff (64-bit DWARF), which no file needs here. */
	for (size_t at = 0; !err && len - at >= sizeof(entry); at += 4 + (size_t)entry.len) {
		memcpy(&entry, bytes + at, sizeof(entry));
		if (!entry.len || entry.len > len - at - 4)
			break;
		if (!entry.id && !memcmp(entry.body, signal_cie, sizeof(signal_cie)))
			cie = at;
		else if (entry.id && at + 4 - entry.id == cie)
			err = add_trampoline(reading, &entry, shdr.sh_addr + at + 8);
	}
	return err;
}

int stubs_read(struct symbol_table *stubs, struct elf_reader *elf, const struct symbol_table *symbols)
{
	struct reading reading = {.elf = elf, .known = symbols, .stubs = stubs};
	GElf_Ehdr header;
	int err;

	if (!gelf_getehdr(elf->elf, &header) || (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	reading.machine = header.e_machine;
	err = read_relocations(&reading, read_dynsym(&reading));
	if (!err)
		err = read_linkage_tables(&reading);
	if (!err && reading.machine == EM_X86_64)
		err = read_trampolines(&reading);
	vec_release(&reading.slots);
	symbol_table_sort(stubs, SYMBOL_USUAL);
	return err == -ENOMEM ? err : 0; /* after -EFBIG the names that fitted are kept */
}
