// SPDX-License-Identifier: MIT
#include "unwind/unwind_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gelf.h>

#include "base/map.h"
#include "unwind/framed.h"

#define MAX_SEGMENTS 256
#define MAX_NOTE_BYTES 65536
#define MAX_FRAME_BYTES (128u << 20)
#define MAX_INFLATED_BYTES (32u << 20) /* what a small file may make of itself */
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
	Elf *elf;
	GElf_Phdr eh_frame_hdr; /* p_filesz 0: none */
};

static Elf_Data *read_chunk(Elf *elf, uint64_t offset, uint64_t bytes, Elf_Type type)
{
	if (!bytes || offset > INT64_MAX)
		return NULL;
	return elf_getdata_rawchunk(elf, (int64_t)offset, bytes, type);
}

/* ---- program headers ---- */

static void read_build_id(struct reading *reading, const GElf_Phdr *phdr)
{
	Elf_Data *data = NULL;
	size_t name_at, desc_at, next;
	GElf_Nhdr note;

	if (phdr->p_filesz <= MAX_NOTE_BYTES)
		data = read_chunk(reading->elf, phdr->p_offset, phdr->p_filesz,
				  phdr->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	for (size_t at = 0; data && (next = gelf_getnote(data, at, &note, &name_at, &desc_at)); at = next)
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) && note.n_descsz &&
		    !memcmp((char *)data->d_buf + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			reading->file->build_id = hash_bytes((char *)data->d_buf + desc_at, note.n_descsz, 1);
}

/* Where the file has code, and no rows but for that. */
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

	if (elf_getphdrnum(reading->elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(reading->elf, (int)i, &phdr))
			continue;
		if (phdr.p_type == PT_GNU_EH_FRAME)
			reading->eh_frame_hdr = phdr;
		if (phdr.p_type == PT_NOTE)
			read_build_id(reading, &phdr);
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

/* NULL when there is none by that name, as in files without section headers. */
static Elf_Scn *find_section(Elf *elf, const char *wanted, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, ret) && ret->sh_type != SHT_NOBITS &&
		    (name = elf_strptr(elf, names, ret->sh_name)) && !strcmp(name, wanted))
			return section;
	return NULL;
}

/* 0, also for one that is not compressed. */
static int inflate_section(Elf_Scn *section, const GElf_Shdr *shdr)
{
	GElf_Chdr compression;

	if (!(shdr->sh_flags & SHF_COMPRESSED))
		return 0;
	if (!gelf_getchdr(section, &compression))
		return -ENODATA;
	if (compression.ch_size > MAX_INFLATED_BYTES)
		return -E2BIG;
	return elf_compress(section, 0, 0) < 0 ? -ENODATA : 0;
}

static int read_table(const struct unwind_file *file, struct cfi_section section, struct unwind_rows *ret)
{
	section.code_start = file->code_start;
	section.code_end = file->code_end;
	return unwind_rows_read(ret, &HOST_CFI, &section);
}

/* ---- .debug_frame ---- */

static int add_debug_frame(struct unwind_file *file, Elf *elf)
{
	GElf_Shdr shdr;
	Elf_Scn *section = find_section(elf, ".debug_frame", &shdr);
	int err = section ? 0 : -ENODATA;
	struct unwind_rows rows;
	Elf_Data *data;

	if (!err && shdr.sh_size > MAX_FRAME_BYTES)
		err = -E2BIG;
	if (!err)
		err = inflate_section(section, &shdr);
	data = err ? NULL : elf_getdata(section, NULL);
	if (!data || !data->d_buf)
		return err ? err : -ENODATA;
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

/* By the index that the unwinder in the process uses; .eh_frame ends itself with an entry of length 0. */
static bool find_by_index(struct reading *reading, GElf_Shdr *ret)
{
	const GElf_Phdr *phdr = &reading->eh_frame_hdr;
	Elf_Data *data = phdr->p_filesz < EH_FRAME_HDR_BYTES
				 ? NULL
				 : read_chunk(reading->elf, phdr->p_offset, EH_FRAME_HDR_BYTES, ELF_T_BYTE);
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

/* By its section, which tells its size, or else by the index. */
static int read_eh_frame(struct reading *reading)
{
	GElf_Shdr at = {0};
	Elf_Data *data;

	if (!find_section(reading->elf, ".eh_frame", &at) && !find_by_index(reading, &at))
		return -ENODATA;
	if (at.sh_size > MAX_FRAME_BYTES)
		return -E2BIG;
	data = read_chunk(reading->elf, at.sh_offset, at.sh_size, ELF_T_BYTE);
	if (!data || !data->d_buf)
		return -ENODATA;
	return read_table(reading->file,
			  (struct cfi_section){.bytes = data->d_buf, .len = data->d_size, .vaddr = at.sh_addr},
			  &reading->file->rows);
}

/* What other sources may have more of is not worth losing the rows that are there. */
static int read_rows(struct reading *reading)
{
	struct unwind_file *file = reading->file;
	int err = read_eh_frame(reading);

	if (!err || err == -ENODATA)
		(void)add_debug_frame(file, reading->elf);
	if ((!err || err == -ENODATA) && HOST_MACHINE == EM_X86_64)
		(void)framed_add(&file->rows, reading->elf, file->code_start, file->code_end);
	return err == -ENODATA ? 0 : err;
}

/* ---- files ---- */

/* libelf allocates for every section that section 0 claims when e_shnum is 0: refused before it sees them. */
static int check_header(const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_machine != HOST_MACHINE || (header->e_shoff && !header->e_shnum))
		return -ENOEXEC;
	return 0;
}

/* Ends `elf`. */
static int read_elf(struct unwind_file *file, Elf *elf, bool only_identify)
{
	struct unwind_file read = {0};
	struct reading reading = {.file = &read, .elf = elf};
	int err = elf && elf_kind(elf) == ELF_K_ELF ? read_program_headers(&reading) : -ENOEXEC;

	if (!err && !only_identify)
		err = read_rows(&reading);
	elf_end(elf);
	if (err)
		unwind_file_release(&read);
	else
		*file = read;
	return err;
}

/* NULL when it is not one that libelf may see. */
static Elf *open_elf(int fd)
{
	Elf64_Ehdr header;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) || check_header(&header))
		return NULL;
	elf_version(EV_CURRENT);
	return elf_begin(fd, ELF_C_READ, NULL);
}

int unwind_file_read(struct unwind_file *file, int fd, bool only_identify)
{
	return read_elf(file, open_elf(fd), only_identify);
}

int unwind_file_add_debug(struct unwind_file *file, int fd)
{
	Elf *elf = open_elf(fd);
	int err = elf && elf_kind(elf) == ELF_K_ELF ? add_debug_frame(file, elf) : -ENOEXEC;

	elf_end(elf);
	return err;
}

int unwind_file_read_memory(struct unwind_file *file, void *bytes, size_t len)
{
	Elf64_Ehdr header;

	if (len < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, bytes, sizeof(header));
	if (check_header(&header))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	return read_elf(file, elf_memory(bytes, len), false);
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

/* A mapping starts with a page, so it may hold the end of what lies before the code. */
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
