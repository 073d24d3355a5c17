/* SPDX-License-Identifier: MIT */
#include "unwind/framed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MAX_SYMBOLS (4u << 20)
#define MAX_PROLOGUE 1024 /* bytes searched in a function: some check their arguments before they make a frame */
#define MAX_CODE (64u << 20) /* bytes searched in a file */
#define CALL_REGISTER 0xff /* call *%reg; the second byte is 0xd0 to 0xd7 */
#define LOOK_BYTES 256 /* cost of each function, however short, in bytes searched */

/* push %rbp; mov %rsp,%rbp */
static const unsigned char makes_frame[] = {0x55, 0x48, 0x89, 0xe5};

static const struct {
	const char *name;
	enum duet_unwind_cfa cfa;
} switching[] = {
	{"runtime.systemstack", DUET_CFA_SWITCHED},
	{"runtime.nanotime1", DUET_CFA_SWITCHED},
	{"runtime.walltime", DUET_CFA_SWITCHED},
	{"time.now", DUET_CFA_SWITCHED},
	{"runtime.asmcgocall", DUET_CFA_SWITCHED},
	{"runtime.mcall", DUET_CFA_ENTRY}, /* the scheduler, which goes on with any goroutine */
	{"runtime.morestack", DUET_CFA_ENTRY},
};

static Elf_Data *find_symtab(struct elf_reader *reader, size_t *ret_names)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_SYMTAB) {
			*ret_names = shdr.sh_link;
			return elf_reader_section(reader, section, &shdr);
		}
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

/* Finds the calls through a register. A row for a call is that of its last byte. */
static int add_switches(struct framed *framed, const GElf_Sym *symbol, enum duet_unwind_cfa cfa)
{
	unsigned char code[MAX_PROLOGUE];
	size_t len = symbol_code(framed, symbol, code);
	int err = 0;

	for (size_t i = 0; !err && i + 1 < len; i++) {
		uint64_t last = symbol->st_value + i + 1;

		if (code[i] == CALL_REGISTER && (code[i + 1] & 0xf8) == 0xd0)
			err = vec_push(&framed->switches, (struct unwind_span){last, last + 1, cfa});
	}
	return err;
}

/* Assembler's functions have a suffix that names their calling convention. */
static int look_for_switches(struct framed *framed, const GElf_Sym *symbol)
{
	const char *name = elf_strptr(framed->reader->elf, framed->names, symbol->st_name);

	for (size_t i = 0; name && i < sizeof(switching) / sizeof(*switching); i++) {
		size_t len = strlen(switching[i].name);

		if (!strncmp(name, switching[i].name, len) && (!name[len] || !strcmp(name + len, ".abi0")))
			return add_switches(framed, symbol, switching[i].cfa);
	}
	return 0;
}

static int look_at(struct framed *framed, const struct unwind_rows *known, const GElf_Sym *symbol)
{
	unsigned char code[MAX_PROLOGUE];
	const unsigned char *made;
	uint64_t frame;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < sizeof(makes_frame) ||
	    symbol->st_value < framed->code_start || symbol->st_value >= framed->code_end ||
	    symbol->st_size > framed->code_end - symbol->st_value || framed->looked_at > MAX_CODE)
		return 0;
	if (unwind_rows_cover(known, symbol->st_value))
		return look_for_switches(framed, symbol);
	made = memmem(code, symbol_code(framed, symbol, code), makes_frame, sizeof(makes_frame));
	if (!made)
		return 0;
	frame = symbol->st_value + (uint64_t)(made - code) + sizeof(makes_frame);
	return vec_push(&framed->found, (struct unwind_span){frame, symbol->st_value + symbol->st_size, DUET_CFA_FP});
}

static int compare_spans(const void *a, const void *b)
{
	const struct unwind_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int framed_begin(struct framed *framed, struct elf_reader *reader, uint64_t code_start, uint64_t code_end)
{
	*framed = (struct framed){.reader = reader, .next = 1, .code_start = code_start, .code_end = code_end};
	framed->symbols = find_symtab(reader, &framed->names);
	return framed->symbols ? 0 : -ENODATA;
}

/* Makes the rows of `spans`, which are not sorted. */
static int make_rows(const struct framed *framed, struct unwind_span *spans, size_t count, struct unwind_rows *ret)
{
	qsort(spans, count, sizeof(*spans), compare_spans);
	return unwind_rows_of_frames(ret, framed->code_start, spans, count);
}

static int add_found(const struct framed *framed, struct unwind_rows *rows)
{
	struct unwind_rows more;
	int err;

	if (!framed->found.len)
		return -ENODATA;
	err = make_rows(framed, framed->found.items, framed->found.len, &more);
	if (err)
		return err;
	err = unwind_rows_merge(rows, &more);
	unwind_rows_release(&more);
	return err;
}

/* Unlike what was found, switches replace rows of the table. */
static int put_switches(const struct framed *framed, struct unwind_rows *rows)
{
	struct unwind_rows first;
	int err;

	if (!framed->switches.len)
		return 0;
	err = make_rows(framed, framed->switches.items, framed->switches.len, &first);
	if (err)
		return err;
	err = unwind_rows_merge(&first, rows);
	if (err) {
		unwind_rows_release(&first);
		return err;
	}
	unwind_rows_release(rows);
	*rows = first;
	return 0;
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
	if (!err)
		err = put_switches(framed, rows);
	return err ? err : add_found(framed, rows);
}

void framed_end(struct framed *framed)
{
	vec_release(&framed->found);
	vec_release(&framed->switches);
}
