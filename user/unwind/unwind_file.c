// SPDX-License-Identifier: MIT
#include "unwind/unwind_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/elf_reader.h"
#include "proc/process.h"

/* The search for such functions among those that a file's .symtab names, in several steps. */
struct framed {
	struct elf_reader *reader;
	Elf_Data *symbols;
	size_t names; /* index of the section with their names */
	int next; /* index of the next symbol */
	uint64_t code_start, code_end;
	uint64_t looked_at; /* bytes of code searched so far */
	struct vec(struct unwind_span) found;
	struct vec(struct unwind_span) switches; /* calls on another stack */
};

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

/* Returns 0, or -ENODATA if the file has no .symtab. The reader must stay open until framed_end(). */
static int framed_begin(struct framed *framed, struct elf_reader *reader, uint64_t code_start, uint64_t code_end)
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

/*
 * Searches until until_ns. After the last symbol, adds rows for the functions found to `rows`, which must be the same
 * at each call. Returns 0, -EAGAIN before the last symbol, -ENODATA if nothing was found, -E2BIG or -ENOMEM; after an
 * error the rows are as before.
 */
static int framed_step(struct framed *framed, struct unwind_rows *rows, uint64_t until_ns)
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

static void framed_end(struct framed *framed)
{
	vec_release(&framed->found);
	vec_release(&framed->switches);
}

#define MAX_SEGMENTS 256
#define MAX_FRAME_BYTES (128u << 20)
#define MAX_INFLATED_BYTES (32u << 20) /* limit for compressed sections, which may be small in the file */
#define EH_FRAME_HDR_BYTES 8 /* four bytes of encodings, then the address of .eh_frame */
#define DW_EH_PE_PCREL_SDATA4 0x1b

#ifdef __x86_64__
#define HOST_CFI cfi_x86_64
#else
#define HOST_CFI cfi_aarch64
#endif

enum source { SOURCE_EH_FRAME, SOURCE_DEBUG_FRAME, SOURCE_FRAMED, SOURCES };

struct unwind_reading {
	struct unwind_file file;
	struct elf_reader reader;
	GElf_Phdr eh_frame_hdr; /* p_filesz 0: none */
	enum source source; /* the source from which rows are being made, or will be made next */
	enum source end; /* the first source that is not used */
	bool is_begun;
	struct unwind_making making; /* for the first two sources */
	struct framed framed;
};

/* ---- program headers ---- */

/* Sets the range in which the file has code. Rows are made for this range only. */
static void set_code(struct unwind_file *file)
{
	file->code_start = UINT64_MAX;
	for (size_t i = 0; i < file->segments.len; i++) {
		const struct unwind_segment *segment = &file->segments.items[i];

		if (!segment->executable || segment->vaddr + segment->size < segment->vaddr)
			continue;
		if (segment->vaddr < file->code_start)
			file->code_start = segment->vaddr;
		if (segment->vaddr + segment->size > file->code_end)
			file->code_end = segment->vaddr + segment->size;
	}
	file->base = unwind_rows_base(file->code_start);
}

static int read_program_headers(struct unwind_reading *reading)
{
	GElf_Phdr phdr;
	size_t count;

	if (elf_getphdrnum(reading->reader.elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(reading->reader.elf, (int)i, &phdr))
			continue;
		if (phdr.p_type == PT_GNU_EH_FRAME)
			reading->eh_frame_hdr = phdr;
		if (phdr.p_type == PT_LOAD &&
		    vec_push(&reading->file.segments,
			     (struct unwind_segment){phdr.p_offset, phdr.p_filesz, phdr.p_vaddr,
						     phdr.p_flags & PF_X}) < 0)
			return -ENOMEM;
	}
	set_code(&reading->file);
	return 0;
}

/* ---- sections ---- */

/* Takes memory from the reader's budget: the result for each function is about as large as its table entry. */
static bool takes_functions(struct elf_reader *reader, const Elf_Data *data)
{
	return data->d_size <= reader->left / 2 && elf_reader_take(reader, 2 * data->d_size);
}

/* `data` is NULL if the file has no such section, or it cannot be read. */
static int begin_section(struct unwind_reading *reading, const Elf_Data *data, struct cfi_section section)
{
	if (!data || !takes_functions(&reading->reader, data))
		return data ? -E2BIG : -ENODATA;
	section.bytes = data->d_buf;
	section.len = data->d_size;
	section.code_start = reading->file.code_start;
	section.code_end = reading->file.code_end;
	unwind_making_begin(&reading->making, &HOST_CFI, &section);
	return 0;
}

/* ---- .eh_frame ---- */

static const struct unwind_segment *segment_of(const struct unwind_file *file, uint64_t vaddr)
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
	const struct unwind_segment *segment;
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
static int begin_eh_frame(struct unwind_reading *reading)
{
	GElf_Shdr at = {0};

	if (!elf_reader_find(&reading->reader, ".eh_frame", &at) && !find_by_index(reading, &at))
		return -ENODATA;
	if (at.sh_size > MAX_FRAME_BYTES)
		return -E2BIG;
	return begin_section(reading, elf_reader_chunk(&reading->reader, at.sh_offset, at.sh_size, ELF_T_BYTE),
			     (struct cfi_section){.vaddr = at.sh_addr});
}

/* ---- the sources, one after the other ---- */

static int begin_debug_frame(struct unwind_reading *reading)
{
	struct elf_reader *reader = &reading->reader;
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find(reader, ".debug_frame", &shdr);

	return begin_section(reading,
			     section ? elf_reader_inflated(reader, section, &shdr, MAX_INFLATED_BYTES) : NULL,
			     (struct cfi_section){.is_debug_frame = true});
}

static int begin_framed(struct unwind_reading *reading)
{
	if (MACHINE_ELF != EM_X86_64)
		return -ENODATA;
	return framed_begin(&reading->framed, &reading->reader, reading->file.code_start, reading->file.code_end);
}

static int step_section(struct unwind_reading *reading, uint64_t until_ns)
{
	struct unwind_rows *rows = &reading->file.rows, *made = &reading->making.rows;
	int err = unwind_making_step(&reading->making, until_ns);

	if (err || rows->rows.len)
		return err ? err : unwind_rows_merge(rows, made);
	*rows = *made;
	*made = (struct unwind_rows){0};
	return 0;
}

static int step_framed(struct unwind_reading *reading, uint64_t until_ns)
{
	return framed_step(&reading->framed, &reading->file.rows, until_ns);
}

static const struct {
	int (*begin)(struct unwind_reading *reading);
	int (*step)(struct unwind_reading *reading, uint64_t until_ns);
} sources[SOURCES] = {
	[SOURCE_EH_FRAME] = {begin_eh_frame, step_section},
	[SOURCE_DEBUG_FRAME] = {begin_debug_frame, step_section},
	[SOURCE_FRAMED] = {begin_framed, step_framed},
};

static void end_source(struct unwind_reading *reading)
{
	unwind_making_end(&reading->making);
	framed_end(&reading->framed);
	reading->making = (struct unwind_making){0};
	reading->framed = (struct framed){0};
	reading->is_begun = false;
}

/* Returns 0 when the source is finished, -EAGAIN before that, or another -errno. */
static int step_source(struct unwind_reading *reading, uint64_t until_ns)
{
	int err = reading->is_begun ? 0 : sources[reading->source].begin(reading);

	reading->is_begun = true;
	if (!err)
		err = sources[reading->source].step(reading, until_ns);
	if (err != -EAGAIN)
		end_source(reading);
	return err;
}

/* An error in a source other than .eh_frame is ignored: the rows of .eh_frame are useful without it. */
int unwind_file_step(struct unwind_reading *reading, uint64_t until_ns)
{
	for (; reading->source < reading->end; reading->source++) {
		int err = step_source(reading, until_ns);

		if (err == -EAGAIN || (err && err != -ENODATA && reading->source == SOURCE_EH_FRAME))
			return err;
	}
	return 0;
}

/* ---- files ---- */

static bool is_of_host(const struct elf_reader *reader)
{
	GElf_Ehdr header;

	return gelf_getehdr(reader->elf, &header) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
	       header.e_machine == MACHINE_ELF;
}

/* Takes ownership of the reader, also after an error. */
static int begin(struct unwind_reading **ret, struct elf_reader *reader)
{
	struct unwind_reading *reading = calloc(1, sizeof(*reading));
	int err;

	if (!reading) {
		elf_reader_close(reader);
		return -ENOMEM;
	}
	reading->reader = *reader;
	reading->end = SOURCES;
	err = is_of_host(reader) ? read_program_headers(reading) : -ENOEXEC;
	if (err)
		unwind_file_end(reading, NULL);
	else
		*ret = reading;
	return err;
}

int unwind_file_begin(struct unwind_reading **ret, int fd)
{
	struct elf_reader reader;

	return elf_reader_open(&reader, fd) ? -ENOEXEC : begin(ret, &reader);
}

int unwind_file_add_debug(struct unwind_reading *reading, int fd)
{
	struct elf_reader reader;
	int err;

	if (elf_reader_open(&reader, fd))
		return -ENOEXEC;
	elf_reader_close(&reading->reader);
	reading->reader = reader;
	err = is_of_host(&reading->reader) ? begin_debug_frame(reading) : -ENOEXEC;
	if (err)
		return err;
	reading->source = SOURCE_DEBUG_FRAME;
	reading->end = SOURCE_DEBUG_FRAME + 1;
	reading->is_begun = true;
	return 0;
}

void unwind_file_end(struct unwind_reading *reading, struct unwind_file *ret)
{
	if (!reading)
		return;
	end_source(reading);
	elf_reader_close(&reading->reader);
	if (ret)
		*ret = reading->file;
	else
		unwind_file_release(&reading->file);
	free(reading);
}

/* Does all steps of a reading. `err` is the result of its beginning. */
static int read_all(struct unwind_file *file, struct unwind_reading *reading, int err)
{
	if (err)
		return err;
	err = unwind_file_step(reading, UINT64_MAX);
	unwind_file_end(reading, err ? NULL : file);
	return err;
}

int unwind_file_read(struct unwind_file *file, int fd)
{
	struct unwind_reading *reading = NULL;
	int err = unwind_file_begin(&reading, fd);

	return read_all(file, reading, err);
}

int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len)
{
	struct unwind_reading *reading = NULL;
	struct elf_reader reader;
	int err = elf_reader_open_memory(&reader, bytes, len) ? -ENOEXEC : begin(&reading, &reader);

	return read_all(file, reading, err);
}

void unwind_file_fill_gaps(struct unwind_file *file)
{
	unwind_rows_fill_gaps(&file->rows, &HOST_CFI);
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
		const struct unwind_segment *segment = &file->segments.items[i];

		if (!segment->executable || offset + len <= segment->offset ||
		    offset >= segment->offset + segment->size)
			continue;
		*ret_vaddr = offset - segment->offset + segment->vaddr;
		return true;
	}
	return false;
}
