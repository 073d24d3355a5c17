/* SPDX-License-Identifier: MIT */
#include "sym/elf_section.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SECTION_BYTES (256u << 20)

union header {
	unsigned char ident[EI_NIDENT];
	Elf64_Ehdr elf64;
	Elf32_Ehdr elf32;
};

/*
 * libelf allocates for every section that section 0 claims when e_shnum is 0.
 * What is mapped as code has no 65280 sections: refused before libelf sees it.
 */
static int check_header(const union header *header, size_t len)
{
	if (len < sizeof(header->elf32) || memcmp(header->ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (header->ident[EI_CLASS] == ELFCLASS64)
		return header->elf64.e_shoff && !header->elf64.e_shnum ? -ENOEXEC : 0;
	return header->elf32.e_shoff && !header->elf32.e_shnum ? -ENOEXEC : 0;
}

/* Takes over `elf`. */
static int check_kind(Elf **ret, Elf *elf)
{
	if (elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		return -ENOEXEC;
	}
	*ret = elf;
	return 0;
}

int elf_section_open(Elf **ret, int fd)
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
	return check_kind(ret, elf_begin(fd, ELF_C_READ, NULL));
}

int elf_section_open_memory(Elf **ret, void *bytes, size_t len)
{
	union header header = {0};
	int err;

	memcpy(&header, bytes, len < sizeof(header) ? len : sizeof(header));
	err = check_header(&header, len);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	return check_kind(ret, elf_memory(bytes, len));
}

Elf_Scn *elf_section_find(Elf *elf, const char *wanted, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, ret) && (name = elf_strptr(elf, names, ret->sh_name)) &&
		    !strcmp(name, wanted))
			return section;
	return NULL;
}

Elf_Data *elf_section_data(Elf_Scn *section, const GElf_Shdr *shdr)
{
	Elf_Data *data;

	if (shdr->sh_type == SHT_NOBITS || (shdr->sh_flags & SHF_COMPRESSED) || !shdr->sh_size ||
	    shdr->sh_size > MAX_SECTION_BYTES)
		return NULL;
	data = elf_getdata(section, NULL);
	return data && data->d_buf ? data : NULL;
}
