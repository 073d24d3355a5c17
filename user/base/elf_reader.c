/* SPDX-License-Identifier: MIT */
#include "base/elf_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES 256 /* what libelf allocates in addition for each chunk */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_DATA ELFDATA2LSB
#else
#define HOST_DATA ELFDATA2MSB
#endif

union header {
	unsigned char ident[EI_NIDENT];
	Elf64_Ehdr elf64;
	Elf32_Ehdr elf32;
};

/*
 * When the header does not hold the number of sections or segments, section 0 does, and libelf allocates as many as
 * section 0 claims. No real library has 65280 sections or 65535 segments, so such files are refused. Files of the other
 * byte order are refused too, because libelf would make a second copy of them.
 */
static int check_counts(uint64_t shoff, uint16_t shnum, uint16_t phnum)
{
	return (shoff && !shnum) || phnum == PN_XNUM ? -ENOEXEC : 0;
}

static int check_header(const union header *header, size_t len)
{
	if (len < sizeof(header->elf32) || memcmp(header->ident, ELFMAG, SELFMAG) ||
	    header->ident[EI_DATA] != HOST_DATA)
		return -ENOEXEC;
	if (header->ident[EI_CLASS] == ELFCLASS64)
		return check_counts(header->elf64.e_shoff, header->elf64.e_shnum, header->elf64.e_phnum);
	return check_counts(header->elf32.e_shoff, header->elf32.e_shnum, header->elf32.e_phnum);
}

/*
 * Takes the section names from the budget: libelf reads all of them when the first is asked for. Returns false when
 * they do not fit the budget. Also refuses compressed names, which libelf would inflate, and names without a NUL at the
 * end, in which libelf would look for the last NUL each time.
 */
static bool takes_names(struct elf_reader *reader)
{
	GElf_Shdr shdr;
	Elf_Scn *section;
	Elf_Data *data;
	size_t names;

	if (elf_getshdrstrndx(reader->elf, &names) < 0 || !(section = elf_getscn(reader->elf, names)) ||
	    !gelf_getshdr(section, &shdr) || !shdr.sh_size)
		return true;
	if (shdr.sh_flags & SHF_COMPRESSED || !elf_reader_take(reader, shdr.sh_size))
		return false;
	data = elf_rawdata(section, NULL);
	return !data || !data->d_buf || !((const char *)data->d_buf)[data->d_size - 1];
}

/* Takes ownership of `reader.elf`. */
static int check_kind(struct elf_reader *ret, struct elf_reader reader)
{
	reader.left = ELF_READER_MAX_BYTES;
	if (elf_kind(reader.elf) != ELF_K_ELF || !takes_names(&reader)) {
		elf_end(reader.elf);
		return -ENOEXEC;
	}
	*ret = reader;
	return 0;
}

int elf_reader_open(struct elf_reader *ret, int fd)
{
	union header header = {0};
	struct stat st;
	ssize_t len;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	len = pread(fd, &header, sizeof(header), 0);
	err = check_header(&header, len < 0 ? 0 : (size_t)len);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	return check_kind(ret, (struct elf_reader){.elf = elf_begin(fd, ELF_C_READ, NULL), .fd = fd});
}

int elf_reader_open_memory(struct elf_reader *ret, void *bytes, size_t len)
{
	union header header = {0};
	int err;

	memcpy(&header, bytes, len < sizeof(header) ? len : sizeof(header));
	err = check_header(&header, len);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	return check_kind(ret, (struct elf_reader){
				       .elf = elf_memory(bytes, len), .fd = -1, .image = bytes, .image_len = len});
}

void elf_reader_close(struct elf_reader *reader)
{
	elf_end(reader->elf);
	reader->elf = NULL;
}

bool elf_reader_take(struct elf_reader *reader, size_t bytes)
{
	if (bytes > reader->left)
		return false;
	reader->left -= bytes;
	return true;
}

const char *elf_reader_name(const struct elf_reader *reader, const GElf_Shdr *shdr)
{
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(reader->elf, &names) < 0)
		return "";
	name = elf_strptr(reader->elf, names, shdr->sh_name);
	return name ? name : "";
}

Elf_Scn *elf_reader_find(const struct elf_reader *reader, const char *wanted, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, ret) && ret->sh_type != SHT_NOBITS &&
		    !strcmp(elf_reader_name(reader, ret), wanted))
			return section;
	return NULL;
}

Elf_Scn *elf_reader_find_type(const struct elf_reader *reader, uint32_t type, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, ret) && ret->sh_type == type)
			return section;
	return NULL;
}

bool elf_reader_segment(const struct elf_reader *reader, size_t *at, GElf_Phdr *ret)
{
	size_t count;

	if (elf_getphdrnum(reader->elf, &count) < 0)
		return false;
	while (*at < count && *at < ELF_READER_MAX_SEGMENTS)
		if (gelf_getphdr(reader->elf, (int)(*at)++, ret))
			return true;
	return false;
}

int elf_reader_segments(const struct elf_reader *reader, struct elf_segments *list, GElf_Phdr *ret_eh_frame_hdr)
{
	GElf_Phdr head;

	for (size_t at = 0; elf_reader_segment(reader, &at, &head);) {
		const struct elf_segment segment = {head.p_offset, head.p_filesz, head.p_vaddr, head.p_flags & PF_X};

		if (head.p_type == PT_GNU_EH_FRAME)
			*ret_eh_frame_hdr = head;
		if (head.p_type == PT_LOAD && vec_push(list, segment) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Finds the segment with `at` in [start, start + size), `start` being its offset or address. */
static const struct elf_segment *find_segment(const struct elf_segments *segments, uint64_t at, bool by_offset)
{
	for (size_t i = 0; i < segments->len; i++) {
		const struct elf_segment *segment = &segments->items[i];

		if (at - (by_offset ? segment->offset : segment->vaddr) < segment->size)
			return segment;
	}
	return NULL;
}

bool elf_segments_vaddr(const struct elf_segments *segments, uint64_t offset, uint64_t *ret_vaddr)
{
	const struct elf_segment *segment = find_segment(segments, offset, true);

	if (segment)
		*ret_vaddr = offset - segment->offset + segment->vaddr;
	return segment;
}

bool elf_segments_offset(const struct elf_segments *segments, uint64_t vaddr, uint64_t *ret_offset)
{
	const struct elf_segment *segment = find_segment(segments, vaddr, false);

	if (segment)
		*ret_offset = vaddr - segment->vaddr + segment->offset;
	return segment;
}

bool elf_segments_is_code(const struct elf_segments *segments, uint64_t offset)
{
	const struct elf_segment *segment = find_segment(segments, offset, true);

	return segment && segment->is_code;
}

Elf_Data *elf_reader_section(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr)
{
	Elf_Data *data;

	if (shdr->sh_type == SHT_NOBITS || (shdr->sh_flags & SHF_COMPRESSED) || !shdr->sh_size ||
	    !elf_reader_take(reader, shdr->sh_size))
		return NULL;
	data = elf_getdata(section, NULL);
	return data && data->d_buf ? data : NULL;
}

Elf_Data *elf_reader_symbols(struct elf_reader *reader, Elf_Scn *table, const GElf_Shdr *shdr, Elf_Data **ret_names)
{
	Elf_Scn *names = elf_getscn(reader->elf, shdr->sh_link);
	GElf_Shdr names_shdr;
	Elf_Data *symbols;

	if (!names || !gelf_getshdr(names, &names_shdr) || names_shdr.sh_type != SHT_STRTAB)
		return NULL;
	symbols = elf_reader_section(reader, table, shdr);
	*ret_names = symbols ? elf_reader_section(reader, names, &names_shdr) : NULL;
	return *ret_names && !((const char *)(*ret_names)->d_buf)[(*ret_names)->d_size - 1] ? symbols : NULL;
}

const char *elf_reader_symbol_name(const Elf_Data *names, const GElf_Sym *symbol)
{
	return symbol->st_name < names->d_size ? (const char *)names->d_buf + symbol->st_name : "";
}

Elf_Data *elf_reader_chunk(struct elf_reader *reader, uint64_t offset, uint64_t bytes, Elf_Type type)
{
	Elf_Data *data;

	if (!bytes || offset > INT64_MAX || bytes > reader->left || !elf_reader_take(reader, bytes + CHUNK_BYTES))
		return NULL;
	data = elf_getdata_rawchunk(reader->elf, (int64_t)offset, bytes, type);
	return data && data->d_buf ? data : NULL;
}

size_t elf_reader_copy(const struct elf_reader *reader, uint64_t offset, void *to, size_t bytes)
{
	ssize_t len;

	if (offset > INT64_MAX)
		return 0;
	if (!reader->image) {
		len = pread(reader->fd, to, bytes, (off_t)offset);
		return len > 0 ? (size_t)len : 0;
	}
	if (offset >= reader->image_len)
		return 0;
	if (bytes > reader->image_len - offset)
		bytes = reader->image_len - offset;
	memcpy(to, reader->image + offset, bytes);
	return bytes;
}

Elf_Data *elf_reader_inflated(struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr, size_t max_bytes)
{
	GElf_Chdr compression;
	Elf_Data *data;

	if (!(shdr->sh_flags & SHF_COMPRESSED))
		return elf_reader_section(reader, section, shdr);
	if (shdr->sh_size > reader->left || !elf_reader_take(reader, shdr->sh_size) ||
	    !gelf_getchdr(section, &compression) || compression.ch_size > max_bytes ||
	    !elf_reader_take(reader, compression.ch_size) || elf_compress(section, 0, 0) < 0)
		return NULL;
	data = elf_getdata(section, NULL);
	return data && data->d_buf ? data : NULL;
}
