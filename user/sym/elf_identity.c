/* SPDX-License-Identifier: MIT */
#include "sym/elf_identity.h"

#include <string.h>

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

static void read_section(struct elf_identity *identity, struct elf_reader *reader, Elf_Scn *section,
			 const GElf_Shdr *shdr)
{
	Elf_Data *data;

	if (shdr->sh_type == SHT_NOTE ? shdr->sh_size > MAX_NOTE_BYTES
				      : strcmp(elf_reader_name(reader, shdr), ".gnu_debuglink") != 0)
		return;
	data = elf_reader_section(reader, section, shdr);
	if (!data)
		return;
	if (shdr->sh_type == SHT_NOTE)
		read_build_id(identity, data);
	else
		read_debuglink(identity, data);
}

void elf_identity_read(struct elf_identity *identity, struct elf_reader *reader)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	*identity = (struct elf_identity){0};
	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, &shdr))
			read_section(identity, reader, section, &shdr);
}

int elf_identity_read_fd(struct elf_identity *identity, int fd)
{
	struct elf_reader reader;
	int err = elf_reader_open(&reader, fd);

	if (err < 0)
		return err;
	elf_identity_read(identity, &reader);
	elf_reader_close(&reader);
	return 0;
}
