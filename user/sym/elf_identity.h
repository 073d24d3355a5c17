/* SPDX-License-Identifier: MIT */
/* Identifies the build of an ELF file and the debug file that belongs to it. */
#ifndef SYM_ELF_IDENTITY_H
#define SYM_ELF_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/elf_reader.h"

#define ELF_IDENTITY_MAX_BUILD_ID 64

struct elf_identity {
	uint8_t build_id[ELF_IDENTITY_MAX_BUILD_ID];
	size_t build_id_len; /* 0 = none */
	char debuglink[256]; /* file name, "" = none */
	uint32_t debuglink_crc;
};

void elf_identity_read(struct elf_identity *identity, struct elf_reader *reader);
/* Returns 0, or -errno as elf_reader_open(). The descriptor stays the caller's. */
int elf_identity_read_fd(struct elf_identity *identity, int fd);

#endif
