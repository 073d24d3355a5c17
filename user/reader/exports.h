/* SPDX-License-Identifier: MIT */
/*
 * The exported symbols of a library in another process, read from its image in memory. The file is not needed: it may
 * be deleted, replaced, or on another user's file system. Reads through reader/memory.h.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses in the process. */
struct exports {
	uintptr_t bias; /* difference to the file's virtual addresses */
	uintptr_t symbols; /* DT_SYMTAB */
	uintptr_t strings; /* DT_STRTAB */
	uintptr_t gnu_hash; /* DT_GNU_HASH; 0: there is none */
	uintptr_t hash; /* DT_HASH; 0: there is none */
};

#define EXPORTS_MAX_SEGMENTS 64 /* an image with more is refused */
/* Goes through the program headers, from *at = 0 on. `image` is where the ELF header is mapped. False at the end. */
bool exports_segment(uintptr_t image, size_t *at, Elf64_Phdr *ret);
/* Returns 0, or -ENOEXEC when it has no symbols or neither hash table. */
int exports_open(struct exports *exports, uintptr_t image);
/* Returns the symbol's address; 0 when there is none. */
uintptr_t exports_find(const struct exports *exports, const char *name);
