// SPDX-License-Identifier: MIT
#include "unwind/unwind_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_reader.h"
#include "proc/machine.h"
#include "unwind/framed.h"

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
