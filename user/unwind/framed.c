/* SPDX-License-Identifier: MIT */
#include "unwind/framed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MAX_SYMBOLS (4u << 20)
#define MAX_PROLOGUE 1024 /* bytes searched in a function: some check their arguments before they make a frame */
#define MAX_CODE (64u << 20) /* bytes searched in a file */
#define LOOK_BYTES 256 /* cost of each function, however short, in bytes searched */

/* push %rbp; mov %rsp,%rbp */
static const unsigned char makes_frame[] = {0x55, 0x48, 0x89, 0xe5};

static Elf_Data *find_symtab(struct elf_reader *reader)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_SYMTAB)
			return elf_reader_section(reader, section, &shdr);
	return NULL;
}

/* Copies the first bytes of a symbol's code. Returns how many: 0 if the file has no code there. */
static size_t symbol_code(struct framed *framed, const GElf_Sym *symbol, unsigned char code[MAX_PROLOGUE])
{
	size_t bytes = symbol->st_size < MAX_PROLOGUE ? symbol->st_size : MAX_PROLOGUE;
	Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(framed->reader->elf, symbol->st_shndx) : NULL;
	GElf_Shdr shdr;

	if (!section || !gelf_getshdr(section, &shdr) || shdr.sh_type != SHT_PROGBITS ||
	    !(shdr.sh_flags & SHF_EXECINSTR) || symbol->st_value < shdr.sh_addr ||
	    symbol->st_value - shdr.sh_addr >= shdr.sh_size || shdr.sh_offset > UINT64_MAX - shdr.sh_size)
		return 0;
	framed->looked_at += bytes + LOOK_BYTES;
	return elf_reader_copy(framed->reader, shdr.sh_offset + symbol->st_value - shdr.sh_addr, code, bytes);
}

static int look_at(struct framed *framed, const struct unwind_rows *known, const GElf_Sym *symbol)
{
	unsigned char code[MAX_PROLOGUE];
	const unsigned char *made;
	uint64_t frame;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < sizeof(makes_frame) ||
	    symbol->st_value < framed->code_start || symbol->st_value >= framed->code_end ||
	    symbol->st_size > framed->code_end - symbol->st_value || framed->looked_at > MAX_CODE ||
	    unwind_rows_tell(known, symbol->st_value))
		return 0;
	made = memmem(code, symbol_code(framed, symbol, code), makes_frame, sizeof(makes_frame));
	if (!made)
		return 0;
	frame = symbol->st_value + (uint64_t)(made - code) + sizeof(makes_frame);
	return vec_push(&framed->found, (struct unwind_span){frame, symbol->st_value + symbol->st_size});
}

static int compare_spans(const void *a, const void *b)
{
	const struct unwind_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int framed_begin(struct framed *framed, struct elf_reader *reader, uint64_t code_start, uint64_t code_end)
{
	*framed = (struct framed){
		.reader = reader,
		.symbols = find_symtab(reader),
		.next = 1,
		.code_start = code_start,
		.code_end = code_end,
	};
	return framed->symbols ? 0 : -ENODATA;
}

static int add_found(const struct framed *framed, struct unwind_rows *rows)
{
	struct unwind_rows more;
	int err;

	if (!framed->found.len)
		return -ENODATA;
	qsort(framed->found.items, framed->found.len, sizeof(framed->found.items[0]), compare_spans);
	err = unwind_rows_of_frames(&more, framed->code_start, framed->found.items, framed->found.len);
	if (err)
		return err;
	err = unwind_rows_merge(rows, &more);
	unwind_rows_release(&more);
	return err;
}

int framed_step(struct framed *framed, struct unwind_rows *rows, uint64_t until_ns)
{
	uint32_t turns = 0;
	GElf_Sym symbol;
	int err = 0;

	for (; !err && framed->next < (int)MAX_SYMBOLS && gelf_getsym(framed->symbols, framed->next, &symbol);
	     framed->next++) {
		if (clock_is_up(&turns, until_ns))
			return -EAGAIN;
		err = look_at(framed, rows, &symbol);
	}
	return err ? err : add_found(framed, rows);
}

void framed_end(struct framed *framed)
{
	vec_release(&framed->found);
}
