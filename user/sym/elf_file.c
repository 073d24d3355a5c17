/* SPDX-License-Identifier: MIT */
#include "sym/elf_file.h"

#include <errno.h>
#include <string.h>

#include <gelf.h>

#define OPEN_CODE_BYTES 512 /* searched for the end of a function of unknown size */
#define MAX_NOTE_BYTES (1u << 20) /* a larger section has no build id, which has a small section to itself */

static void read_build_id(struct elf_identity *identity, Elf_Data *data)
{
	size_t name_at, desc_at, next;
	GElf_Nhdr note;

	for (size_t at = 0; (next = gelf_getnote(data, at, &note, &name_at, &desc_at)); at = next) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp((char *)data->d_buf + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) ||
		    note.n_descsz > sizeof(identity->build_id))
			continue;
		memcpy(identity->build_id, (char *)data->d_buf + desc_at, note.n_descsz);
		identity->build_id_len = note.n_descsz;
	}
}

/* The section has a file name, NUL, padding to 4 bytes, and the CRC. We put the name into paths: no '/' is allowed. */
static void read_debuglink(struct elf_identity *identity, const Elf_Data *data)
{
	const char *name = data->d_buf;
	size_t len = strnlen(name, data->d_size);
	size_t crc_at = (len + 4) & ~(size_t)3;

	if (!len || len >= sizeof(identity->debuglink) || memchr(name, '/', len) ||
	    crc_at + sizeof(identity->debuglink_crc) > data->d_size)
		return;
	memcpy(identity->debuglink, name, len);
	identity->debuglink[len] = '\0';
	memcpy(&identity->debuglink_crc, name + crc_at, sizeof(identity->debuglink_crc));
}

static void identity_read(struct elf_identity *identity, struct elf_reader *reader)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find(reader, ".gnu_debuglink", &shdr);
	Elf_Data *data = section ? elf_reader_section(reader, section, &shdr) : NULL;

	*identity = (struct elf_identity){0};
	if (data)
		read_debuglink(identity, data);
	for (section = NULL; (section = elf_nextscn(reader->elf, section));)
		if (gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_NOTE && shdr.sh_size <= MAX_NOTE_BYTES &&
		    (data = elf_reader_section(reader, section, &shdr)))
			read_build_id(identity, data);
}

int elf_identity_read_fd(struct elf_identity *identity, int fd)
{
	struct elf_reader reader;
	int err = elf_reader_open(&reader, fd);

	if (err < 0)
		return err;
	identity_read(identity, &reader);
	elf_reader_close(&reader);
	return 0;
}

/* Finds the table by its program header, as the unwinder in the process does. Section headers may be stripped. */
static void read_function_starts(struct elf_file *file, struct elf_reader *reader, const GElf_Phdr *phdr)
{
	Elf_Data *data = NULL;

	if (phdr->p_filesz <= FUNCTION_STARTS_MAX_BYTES)
		data = elf_reader_chunk(reader, phdr->p_offset, phdr->p_filesz, ELF_T_BYTE);
	if (data) /* a table that cannot be read is treated as missing */
		(void)function_starts_read(&file->function_starts, phdr->p_vaddr, data->d_buf, data->d_size);
}

/* A file with .symtab has the names of its functions, so only another one needs their sizes. */
static void read_function_sizes(struct elf_file *file, struct elf_reader *reader)
{
	Elf_Scn *section = NULL;
	Elf_Data *data = NULL;
	GElf_Shdr shdr;

	if (file->function_starts.count && !file->has_symtab)
		section = elf_reader_find(reader, ".eh_frame", &shdr);
	if (section)
		data = elf_reader_section(reader, section, &shdr);
	if (data) /* without memory, their sizes are not known */
		(void)function_starts_measure(&file->function_starts, shdr.sh_addr, data->d_buf, data->d_size);
}

/* Finds the code section of a symbol. False for data symbols, undefined and absolute ones. */
static bool symbol_section(Elf *elf, const GElf_Sym *symbol, GElf_Shdr *ret)
{
	Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(elf, symbol->st_shndx) : NULL;

	return section && gelf_getshdr(section, ret) && (ret->sh_flags & SHF_EXECINSTR) &&
	       symbol->st_value >= ret->sh_addr && symbol->st_value - ret->sh_addr < ret->sh_size;
}

static bool symbol_is_function(const GElf_Sym *symbol, const char *name)
{
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE: /* assembly; but not arm64's $x and $d, which mark code and data, nor compilers' .L labels */
		return name[0] != '$' && name[0] != '.';
	}
	return false;
}

/* `version` is the text after the name: "@OLD", "@@DEFAULT" or nothing. */
static enum symbol_linkage symbol_linkage(const GElf_Sym *symbol, const char *version, size_t version_len)
{
	unsigned int binding = GELF_ST_BIND(symbol->st_info);

	if (binding == STB_LOCAL)
		return SYMBOL_LOCAL;
	if (version_len > 1 && version[1] != '@')
		return SYMBOL_SUPERSEDED;
	return binding == STB_WEAK ? SYMBOL_WEAK : SYMBOL_GLOBAL;
}

/* Returns the bytes up to the first return instruction. On x86-64 that byte may be part of another one. */
static uint64_t until_return(const struct elf_reader *reader, uint64_t offset, uint64_t most)
{
	static const unsigned char x86[] = {0xc3}, arm64[] = {0xc0, 0x03, 0x5f, 0xd6};
	unsigned char code[OPEN_CODE_BYTES];
	size_t len = elf_reader_copy(reader, offset, code, most < sizeof(code) ? most : sizeof(code));
	const unsigned char *found;
	GElf_Ehdr header;
	bool is_x86 = gelf_getehdr(reader->elf, &header) && header.e_machine == EM_X86_64;

	found = is_x86 ? memmem(code, len, x86, sizeof(x86)) : memmem(code, len, arm64, sizeof(arm64));
	return found ? (uint64_t)(found - code) + (is_x86 ? sizeof(x86) : sizeof(arm64)) : len;
}

/*
 * The most bytes that a symbol of unknown size can have. .dynsym lacks functions that only the file itself calls, so
 * there the code before the next symbol need not be this function's.
 */
static uint64_t symbol_limit(const struct elf_file *file, const struct elf_reader *reader, const GElf_Sym *symbol,
			     const GElf_Shdr *section)
{
	uint64_t at = symbol->st_value - section->sh_addr, in_section = section->sh_size - at;
	uint64_t in_function = function_starts_next(&file->function_starts, symbol->st_value) - symbol->st_value;
	uint64_t most = in_section < in_function ? in_section : in_function, start;

	if (file->has_symtab || symbol->st_size ||
	    function_starts_find(&file->function_starts, symbol->st_value, &start))
		return most;
	return until_return(reader, section->sh_offset + at, most);
}

static int read_symbol(struct elf_file *file, struct elf_reader *reader, const GElf_Sym *symbol, const Elf_Data *names)
{
	const char *name = elf_reader_symbol_name(names, symbol);
	size_t len = strnlen(name, SYMBOL_TABLE_MAX_NAME), plain_len;
	GElf_Shdr section;
	enum symbol_linkage linkage;
	const char *version;

	if (!len || !symbol_section(reader->elf, symbol, &section) || !symbol_is_function(symbol, name))
		return 0;
	if (!elf_reader_take(reader, len + sizeof(struct symbol_row))) /* many symbols may share one long name */
		return -EFBIG;
	version = memchr(name + 1, '@', len - 1); /* linkers append it: name@VERSION, name@@VERSION */
	plain_len = version ? (size_t)(version - name) : len;
	linkage = symbol_linkage(symbol, name + plain_len, len - plain_len);
	return symbol_table_add(&file->symbols, symbol->st_value, symbol->st_size,
				symbol_limit(file, reader, symbol, &section), linkage, name, plain_len);
}

static int read_symbols(struct elf_file *file, struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr)
{
	Elf_Data *names, *symbols = elf_reader_symbols(reader, section, shdr, &names);
	GElf_Sym symbol;
	int err = 0;

	for (int i = 1; symbols && err != -ENOMEM && gelf_getsym(symbols, i, &symbol); i++)
		err = read_symbol(file, reader, &symbol, names);
	return err == -ENOMEM ? err : 0; /* after -EFBIG the symbols that fitted are kept */
}

/* Reads .symtab, or .dynsym if there is no .symtab, which has all of .dynsym's symbols and more. */
static int read_sections(struct elf_file *file, struct elf_reader *reader)
{
	Elf_Scn *section = NULL, *chosen = NULL;
	GElf_Shdr shdr, chosen_shdr = {0};

	while ((section = elf_nextscn(reader->elf, section))) {
		if (!gelf_getshdr(section, &shdr) || (shdr.sh_type != SHT_SYMTAB &&
						     (shdr.sh_type != SHT_DYNSYM || chosen)))
			continue;
		chosen = section;
		chosen_shdr = shdr;
	}
	file->has_symtab = chosen_shdr.sh_type == SHT_SYMTAB;
	read_function_sizes(file, reader);
	return chosen ? read_symbols(file, reader, chosen, &chosen_shdr) : 0;
}

/* Closes the reader, also after an error. */
static int read_elf(struct elf_file *file, struct elf_reader *reader)
{
	GElf_Phdr eh_frame_hdr = {0};
	struct elf_file read = {0};
	int err = elf_reader_segments(reader, &read.segments, &eh_frame_hdr);

	if (!err) {
		identity_read(&read.identity, reader);
		read_function_starts(&read, reader, &eh_frame_hdr);
		err = read_sections(&read, reader);
	}
	if (!err) {
		symbol_table_sort(&read.symbols, SYMBOL_USUAL);
		err = stubs_read(&read.stubs, reader, &read.symbols);
	}
	elf_reader_close(reader);
	if (err)
		elf_file_release(&read);
	else
		*file = read;
	return err;
}

int elf_file_read(struct elf_file *file, int fd)
{
	struct elf_reader reader;
	int err = elf_reader_open(&reader, fd);

	return err ? err : read_elf(file, &reader);
}

int elf_file_read_memory(struct elf_file *file, void *bytes, size_t len)
{
	struct elf_reader reader;
	int err = elf_reader_open_memory(&reader, bytes, len);

	return err ? err : read_elf(file, &reader);
}

/* What is no array. */
struct head {
	struct elf_identity identity;
	uint8_t has_symtab, is_mini;
};

void elf_file_pack(struct buf *buf, const struct elf_file *file)
{
	const struct head head = {file->identity, file->has_symtab, file->is_mini};

	parts_add(buf, &head, sizeof(head));
	parts_add_vec(buf, &file->segments);
	symbol_table_pack(buf, &file->symbols);
	symbol_table_pack(buf, &file->stubs);
	function_starts_pack(buf, &file->function_starts);
}

int elf_identity_check(const struct elf_identity *identity)
{
	const char *name = identity->debuglink;

	return identity->build_id_len <= sizeof(identity->build_id) &&
			       memchr(name, '\0', sizeof(identity->debuglink)) && !strchr(name, '/')
		       ? 0
		       : -EBADMSG;
}

int elf_file_unpack(struct elf_file *file, const struct buf *bytes)
{
	struct parts parts = {.at = bytes->data, .left = bytes->len};
	struct head head;

	*file = (struct elf_file){0};
	parts_read(&parts, &head, sizeof(head));
	file->identity = head.identity;
	file->has_symtab = head.has_symtab;
	file->is_mini = head.is_mini;
	parts_read_vec(&parts, &file->segments, ELF_READER_MAX_SEGMENTS);
	symbol_table_unpack(&parts, &file->symbols);
	symbol_table_unpack(&parts, &file->stubs);
	function_starts_unpack(&parts, &file->function_starts);
	if (!parts.err)
		parts.err = elf_identity_check(&file->identity);
	if (parts.err)
		elf_file_release(file);
	return parts.err;
}

void elf_file_release(struct elf_file *file)
{
	if (!file)
		return;
	symbol_table_release(&file->symbols);
	symbol_table_release(&file->stubs);
	function_starts_release(&file->function_starts);
	vec_release(&file->segments);
}

const char *elf_file_name(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start)
{
	const char *name = symbol_table_find(&file->symbols, vaddr, ret_start);

	return name ? name : symbol_table_find(&file->stubs, vaddr, ret_start);
}

uint64_t elf_file_function_start(const struct elf_file *file, uint64_t vaddr)
{
	uint64_t start;

	return function_starts_find(&file->function_starts, vaddr, &start) ? start : vaddr;
}
