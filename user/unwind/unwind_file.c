// SPDX-License-Identifier: MIT
#include "unwind/unwind_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_reader.h"
#include "proc/process.h"

#define MAX_FRAME_BYTES (128u << 20)
#define MAX_INFLATED_BYTES (32u << 20) /* limit for compressed sections, which may be small in the file */
#define EH_FRAME_HDR_BYTES 8 /* four bytes of encodings, then the address of .eh_frame */
#define DW_EH_PE_PCREL_SDATA4 0x1b
#define MAX_SYMBOLS (4u << 20)
#define MAX_PROLOGUE 1024 /* bytes searched in a function: some check their arguments before they make a frame */
#define MAX_CODE (64u << 20) /* bytes searched in a file */
#define CALL_REGISTER 0xff /* call *%reg; the second byte is 0xd0 to 0xd7 */
#define LOOK_BYTES 256 /* cost of each function, however short, in bytes searched */

struct spans vec(struct unwind_span);

struct unwind_reading {
	struct unwind_file file;
	struct elf_reader reader;
	GElf_Phdr eh_frame_hdr; /* p_filesz 0: none */
	/* the search for functions that make a frame among those that .symtab names */
	Elf_Data *names;
	uint64_t looked_at; /* bytes of code searched so far */
	struct spans found; /* code with a frame */
	struct spans switches; /* calls on another stack */
};

/* Sets the range in which the file has code. Rows are made for this range only. */
static void set_code(struct unwind_file *file)
{
	file->code_start = UINT64_MAX;
	for (size_t i = 0; i < file->segments.len; i++) {
		const struct elf_segment *segment = &file->segments.items[i];

		if (!segment->is_code || segment->vaddr + segment->size < segment->vaddr)
			continue;
		if (segment->vaddr < file->code_start)
			file->code_start = segment->vaddr;
		if (segment->vaddr + segment->size > file->code_end)
			file->code_end = segment->vaddr + segment->size;
	}
	file->base = unwind_rows_base(file->code_start);
}

/*
 * Adds the rows of a section for code that has none yet. `data` is NULL if the file has no such section, or it cannot
 * be read. What is made of it takes as much memory.
 */
static int add_section(struct unwind_reading *reading, const Elf_Data *data, struct cfi_section section)
{
	struct unwind_rows *rows = &reading->file.rows, made;
	int err;

	if (!data)
		return -ENODATA;
	if (data->d_size > reading->reader.left / 2 || !elf_reader_take(&reading->reader, 2 * data->d_size))
		return -E2BIG;
	section.bytes = data->d_buf;
	section.len = data->d_size;
	section.code_start = reading->file.code_start;
	section.code_end = reading->file.code_end;
	err = unwind_rows_make(&made, &CFI_HOST, &section);
	if (err)
		return err;
	if (!rows->rows.len) {
		*rows = made;
		return 0;
	}
	err = unwind_rows_merge(rows, &made);
	unwind_rows_release(&made);
	return err;
}

static const struct elf_segment *segment_of(const struct unwind_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segments.len; i++)
		if (vaddr - file->segments.items[i].vaddr < file->segments.items[i].size)
			return &file->segments.items[i];
	return NULL;
}

/*
 * Finds .eh_frame by .eh_frame_hdr, the index that the unwinder in the process uses. Its size is unknown, so *ret gets
 * the rest of the segment; .eh_frame itself ends with an entry of length 0.
 */
static bool find_by_index(struct unwind_reading *reading, GElf_Shdr *ret)
{
	const GElf_Phdr *phdr = &reading->eh_frame_hdr;
	Elf_Data *data = phdr->p_filesz < EH_FRAME_HDR_BYTES
				 ? NULL
				 : elf_reader_chunk(&reading->reader, phdr->p_offset, EH_FRAME_HDR_BYTES, ELF_T_BYTE);
	const struct elf_segment *segment;
	const uint8_t *bytes = data ? data->d_buf : NULL;
	int32_t distance;

	if (!bytes || bytes[1] != DW_EH_PE_PCREL_SDATA4)
		return false;
	memcpy(&distance, bytes + 4, sizeof(distance));
	ret->sh_addr = phdr->p_vaddr + 4 + (uint64_t)(int64_t)distance;
	segment = segment_of(&reading->file, ret->sh_addr);
	if (!segment)
		return false;
	ret->sh_offset = ret->sh_addr - segment->vaddr + segment->offset;
	ret->sh_size = segment->size - (ret->sh_addr - segment->vaddr);
	return true;
}

/* Finds .eh_frame by its section header, which has its size, or else by the index. */
static int add_eh_frame(struct unwind_reading *reading)
{
	GElf_Shdr at = {0};

	if (!elf_reader_find(&reading->reader, ".eh_frame", &at) && !find_by_index(reading, &at))
		return -ENODATA;
	if (at.sh_size > MAX_FRAME_BYTES)
		return -E2BIG;
	return add_section(reading, elf_reader_chunk(&reading->reader, at.sh_offset, at.sh_size, ELF_T_BYTE),
			   (struct cfi_section){.vaddr = at.sh_addr});
}

static int add_debug_frame(struct unwind_reading *reading)
{
	struct elf_reader *reader = &reading->reader;
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find(reader, ".debug_frame", &shdr);

	return add_section(reading, section ? elf_reader_inflated(reader, section, &shdr, MAX_INFLATED_BYTES) : NULL,
			   (struct cfi_section){.is_debug_frame = true});
}

/* ---- code that makes frames, and has no call frame information ---- */

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

/* Copies the first bytes of a symbol's code. Returns how many: 0 if the file has no code there. */
static size_t symbol_code(struct unwind_reading *reading, const GElf_Sym *symbol, unsigned char code[MAX_PROLOGUE])
{
	size_t bytes = symbol->st_size < MAX_PROLOGUE ? symbol->st_size : MAX_PROLOGUE;
	Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(reading->reader.elf, symbol->st_shndx) : NULL;
	GElf_Shdr shdr;

	if (!section || !gelf_getshdr(section, &shdr) || shdr.sh_type != SHT_PROGBITS ||
	    !(shdr.sh_flags & SHF_EXECINSTR) || symbol->st_value < shdr.sh_addr ||
	    symbol->st_value - shdr.sh_addr >= shdr.sh_size || shdr.sh_offset > UINT64_MAX - shdr.sh_size)
		return 0;
	reading->looked_at += bytes + LOOK_BYTES;
	return elf_reader_copy(&reading->reader, shdr.sh_offset + symbol->st_value - shdr.sh_addr, code, bytes);
}

/* Finds the calls through a register. A row for a call is that of its last byte. */
static int add_switches(struct unwind_reading *reading, const GElf_Sym *symbol, enum duet_unwind_cfa cfa)
{
	unsigned char code[MAX_PROLOGUE];
	size_t len = symbol_code(reading, symbol, code);
	int err = 0;

	for (size_t i = 0; !err && i + 1 < len; i++) {
		uint64_t last = symbol->st_value + i + 1;

		if (code[i] == CALL_REGISTER && (code[i + 1] & 0xf8) == 0xd0)
			err = vec_push(&reading->switches, (struct unwind_span){last, last + 1, cfa});
	}
	return err;
}

/* Assembler's functions have a suffix that names their calling convention. */
static int look_for_switches(struct unwind_reading *reading, const GElf_Sym *symbol)
{
	const char *name = elf_reader_symbol_name(reading->names, symbol);

	for (size_t i = 0; i < sizeof(switching) / sizeof(*switching); i++) {
		size_t len = strlen(switching[i].name);

		if (!strncmp(name, switching[i].name, len) && (!name[len] || !strcmp(name + len, ".abi0")))
			return add_switches(reading, symbol, switching[i].cfa);
	}
	return 0;
}

static int look_at(struct unwind_reading *reading, const GElf_Sym *symbol)
{
	unsigned char code[MAX_PROLOGUE];
	const unsigned char *made;
	uint64_t frame;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < sizeof(makes_frame) ||
	    symbol->st_value < reading->file.code_start || symbol->st_value >= reading->file.code_end ||
	    symbol->st_size > reading->file.code_end - symbol->st_value || reading->looked_at > MAX_CODE)
		return 0;
	if (unwind_rows_cover(&reading->file.rows, symbol->st_value))
		return look_for_switches(reading, symbol);
	made = memmem(code, symbol_code(reading, symbol, code), makes_frame, sizeof(makes_frame));
	if (!made)
		return 0;
	frame = symbol->st_value + (uint64_t)(made - code) + sizeof(makes_frame);
	return vec_push(&reading->found, (struct unwind_span){frame, symbol->st_value + symbol->st_size, DUET_CFA_FP});
}

/* Adds rows for spans, which are not sorted: for code that the table lacks, or in the place of what it has. */
static int add_rows(struct unwind_reading *reading, const struct spans *spans, bool replaces)
{
	struct unwind_rows *rows = &reading->file.rows, more, merged;
	int err;

	if (!spans->len)
		return 0;
	qsort(spans->items, spans->len, sizeof(*spans->items), vec_by_u64);
	err = unwind_rows_of_frames(&more, reading->file.code_start, spans->items, spans->len);
	if (err)
		return err;
	err = replaces ? unwind_rows_merge(&more, rows) : unwind_rows_merge(rows, &more);
	if (!err && replaces) {
		merged = more;
		more = *rows;
		*rows = merged;
	}
	unwind_rows_release(&more);
	return err;
}

static int add_framed(struct unwind_reading *reading)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find_type(&reading->reader, SHT_SYMTAB, &shdr);
	Elf_Data *symbols = NULL;
	GElf_Sym symbol;
	int err = 0;

	if (section && MACHINE_ELF == EM_X86_64)
		symbols = elf_reader_symbols(&reading->reader, section, &shdr, &reading->names);
	for (int i = 1; !err && symbols && i < (int)MAX_SYMBOLS && gelf_getsym(symbols, i, &symbol); i++)
		err = look_at(reading, &symbol);
	if (!err)
		err = add_rows(reading, &reading->switches, true);
	return err ? err : add_rows(reading, &reading->found, false);
}

/* The rows of .eh_frame are useful without those of the others. */
static int add_all(struct unwind_reading *reading)
{
	int err = add_eh_frame(reading);

	if (err && err != -ENODATA)
		return err;
	(void)add_debug_frame(reading);
	(void)add_framed(reading);
	return 0;
}

static bool is_of_host(const struct elf_reader *reader)
{
	GElf_Ehdr header;

	return gelf_getehdr(reader->elf, &header) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
	       header.e_machine == MACHINE_ELF;
}

/* Takes ownership of the reader. */
static int read_all(struct unwind_file *ret, const struct elf_reader *reader)
{
	struct unwind_reading reading = {.reader = *reader};
	int err = is_of_host(reader) ? elf_reader_segments(reader, &reading.file.segments, &reading.eh_frame_hdr)
				     : -ENOEXEC;

	if (!err) {
		set_code(&reading.file);
		err = add_all(&reading);
	}
	elf_reader_close(&reading.reader);
	vec_release(&reading.found);
	vec_release(&reading.switches);
	if (err)
		unwind_file_release(&reading.file);
	else
		*ret = reading.file;
	return err;
}

int unwind_file_read(struct unwind_file *file, int fd)
{
	struct elf_reader reader;

	return elf_reader_open(&reader, fd) ? -ENOEXEC : read_all(file, &reader);
}

int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len)
{
	struct elf_reader reader;

	return elf_reader_open_memory(&reader, bytes, len) ? -ENOEXEC : read_all(file, &reader);
}

int unwind_file_read_debug(struct unwind_rows *ret, int fd, uint64_t code_start, uint64_t code_end)
{
	struct unwind_reading reading = {.file = {.code_start = code_start, .code_end = code_end}};
	int err;

	if (elf_reader_open(&reading.reader, fd))
		return -ENOEXEC;
	err = is_of_host(&reading.reader) ? add_debug_frame(&reading) : -ENOEXEC;
	elf_reader_close(&reading.reader);
	if (!err)
		*ret = reading.file.rows;
	return err;
}

void unwind_file_pack(struct buf *buf, const struct unwind_file *file)
{
	parts_add_vec(buf, &file->segments);
	unwind_rows_pack(buf, &file->rows);
}

void unwind_file_unpack(struct parts *parts, struct unwind_file *ret)
{
	*ret = (struct unwind_file){0};
	parts_read_vec(parts, &ret->segments, ELF_READER_MAX_SEGMENTS);
	set_code(ret);
	unwind_rows_unpack(parts, &ret->rows, ret->code_start);
}

void unwind_file_release(struct unwind_file *file)
{
	if (!file)
		return;
	unwind_rows_release(&file->rows);
	vec_release(&file->segments);
}

/* A mapping starts at a page, so it may begin with bytes that come before the code in the file. */
bool unwind_file_vaddr(const struct unwind_file *file, uint64_t offset, uint64_t len, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < file->segments.len; i++) {
		const struct elf_segment *segment = &file->segments.items[i];

		if (!segment->is_code || offset + len <= segment->offset ||
		    offset >= segment->offset + segment->size)
			continue;
		*ret_vaddr = offset - segment->offset + segment->vaddr;
		return true;
	}
	return false;
}
