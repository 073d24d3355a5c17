// SPDX-License-Identifier: MIT
#include "unwind/unwind_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_reader.h"
#include "unwind/framed.h"

#define MAX_SEGMENTS 256
#define MAX_FRAME_BYTES (128u << 20)
#define MAX_INFLATED_BYTES (32u << 20) /* limit for compressed sections, which may be small in the file */
#define EH_FRAME_HDR_BYTES 8 /* four bytes of encodings, then the address of .eh_frame */
#define DW_EH_PE_PCREL_SDATA4 0x1b

#ifdef __x86_64__
#define HOST_MACHINE EM_X86_64
#define HOST_CFI cfi_x86_64
#else
#define HOST_MACHINE EM_AARCH64
#define HOST_CFI cfi_aarch64
#endif

struct reading {
	struct unwind_file *file;
	struct elf_reader *reader;
	GElf_Phdr eh_frame_hdr; /* p_filesz 0: none */
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

static int read_program_headers(struct reading *reading)
{
	GElf_Phdr phdr;
	size_t count;

	if (elf_getphdrnum(reading->reader->elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(reading->reader->elf, (int)i, &phdr))
			continue;
		if (phdr.p_type == PT_GNU_EH_FRAME)
			reading->eh_frame_hdr = phdr;
		if (phdr.p_type == PT_LOAD &&
		    vec_push(&reading->file->segments,
			     (struct unwind_segment){phdr.p_offset, phdr.p_filesz, phdr.p_vaddr,
						     phdr.p_flags & PF_X}) < 0)
			return -ENOMEM;
	}
	set_code(reading->file);
	return 0;
}

/* ---- sections ---- */

static int read_table(const struct unwind_file *file, struct cfi_section section, struct unwind_rows *ret)
{
	section.code_start = file->code_start;
	section.code_end = file->code_end;
	return unwind_rows_read(ret, &HOST_CFI, &section);
}

/* Takes memory from the reader's budget: the result for each function is about as large as its table entry. */
static bool takes_functions(struct elf_reader *reader, const Elf_Data *data)
{
	return data->d_size <= reader->left / 2 && elf_reader_take(reader, 2 * data->d_size);
}

/* ---- .debug_frame ---- */

static int add_debug_frame(struct unwind_file *file, struct elf_reader *reader)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find(reader, ".debug_frame", &shdr);
	Elf_Data *data = section ? elf_reader_inflated(reader, section, &shdr, MAX_INFLATED_BYTES) : NULL;
	struct unwind_rows rows;
	int err;

	if (!data || !takes_functions(reader, data))
		return data ? -E2BIG : -ENODATA;
	err = read_table(file, (struct cfi_section){.bytes = data->d_buf, .len = data->d_size, .is_debug_frame = true},
			 &rows);
	if (!err) {
		err = unwind_rows_merge(&file->rows, &rows);
		unwind_rows_release(&rows);
	}
	return err;
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
static bool find_by_index(struct reading *reading, GElf_Shdr *ret)
{
	const GElf_Phdr *phdr = &reading->eh_frame_hdr;
	Elf_Data *data = phdr->p_filesz < EH_FRAME_HDR_BYTES
				 ? NULL
				 : elf_reader_chunk(reading->reader, phdr->p_offset, EH_FRAME_HDR_BYTES, ELF_T_BYTE);
	const struct unwind_segment *segment;
	const uint8_t *bytes = data ? data->d_buf : NULL;
	int32_t distance;

	if (!bytes || bytes[1] != DW_EH_PE_PCREL_SDATA4)
		return false;
	memcpy(&distance, bytes + 4, sizeof(distance));
	ret->sh_addr = phdr->p_vaddr + 4 + (uint64_t)(int64_t)distance;
	segment = segment_of(reading->file, ret->sh_addr);
	if (!segment)
		return false;
	ret->sh_offset = ret->sh_addr - segment->vaddr + segment->offset;
	ret->sh_size = segment->size - (ret->sh_addr - segment->vaddr);
	return true;
}

/* Finds .eh_frame by its section header, which has its size, or else by the index. */
static int read_eh_frame(struct reading *reading)
{
	GElf_Shdr at = {0};
	Elf_Data *data;

	if (!elf_reader_find(reading->reader, ".eh_frame", &at) && !find_by_index(reading, &at))
		return -ENODATA;
	if (at.sh_size > MAX_FRAME_BYTES)
		return -E2BIG;
	data = elf_reader_chunk(reading->reader, at.sh_offset, at.sh_size, ELF_T_BYTE);
	if (!data || !takes_functions(reading->reader, data))
		return data ? -E2BIG : -ENODATA;
	return read_table(reading->file,
			  (struct cfi_section){.bytes = data->d_buf, .len = data->d_size, .vaddr = at.sh_addr},
			  &reading->file->rows);
}

/* An error in another source is ignored: the rows of .eh_frame are worth having without it. */
static int read_rows(struct reading *reading)
{
	struct unwind_file *file = reading->file;
	int err = read_eh_frame(reading);

	if (!err || err == -ENODATA)
		(void)add_debug_frame(file, reading->reader);
	if ((!err || err == -ENODATA) && HOST_MACHINE == EM_X86_64)
		(void)framed_add(&file->rows, reading->reader, file->code_start, file->code_end);
	return err == -ENODATA ? 0 : err;
}

/* ---- files ---- */

static bool is_of_host(const struct elf_reader *reader)
{
	GElf_Ehdr header;

	return gelf_getehdr(reader->elf, &header) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
	       header.e_machine == HOST_MACHINE;
}

/* Closes the reader, also after an error. */
static int read_elf(struct unwind_file *file, struct elf_reader *reader)
{
	struct unwind_file read = {0};
	struct reading reading = {.file = &read, .reader = reader};
	int err = is_of_host(reader) ? read_program_headers(&reading) : -ENOEXEC;

	if (!err)
		err = read_rows(&reading);
	elf_reader_close(reader);
	if (err)
		unwind_file_release(&read);
	else
		*file = read;
	return err;
}

int unwind_file_read(struct unwind_file *file, int fd)
{
	struct elf_reader reader;

	return elf_reader_open(&reader, fd) ? -ENOEXEC : read_elf(file, &reader);
}

int unwind_file_add_debug(struct unwind_file *file, int fd)
{
	struct elf_reader reader;
	int err;

	if (elf_reader_open(&reader, fd))
		return -ENOEXEC;
	err = is_of_host(&reader) ? add_debug_frame(file, &reader) : -ENOEXEC;
	elf_reader_close(&reader);
	return err;
}

int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len)
{
	struct elf_reader reader;

	return elf_reader_open_memory(&reader, bytes, len) ? -ENOEXEC : read_elf(file, &reader);
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

/* A mapping starts at a page, so it may begin with the end of what is before the code in the file. */
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
