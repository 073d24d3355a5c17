/* SPDX-License-Identifier: MIT */
#include "reader/exports.h"

#include <errno.h>
#include <string.h>

#include "reader/memory.h"

#define MAX_DYNAMIC 256
#define MAX_CHAIN 4096 /* most symbols of one bucket; libjvm has a few */
#define NAME_MAX_BYTES 64 /* bytes; longer than any name that is looked up */

static bool copy(void *to, uintptr_t from, size_t bytes)
{
	return memory_copy(to, from, bytes) == bytes;
}

bool exports_segment(uintptr_t image, size_t *at, Elf64_Phdr *ret)
{
	Elf64_Ehdr head;

	return copy(&head, image, sizeof(head)) && head.e_phentsize == sizeof(*ret) &&
	       head.e_phnum <= EXPORTS_MAX_SEGMENTS && *at < head.e_phnum &&
	       copy(ret, image + head.e_phoff + (*at)++ * sizeof(*ret), sizeof(*ret));
}

/* Finds the dynamic section, and sets the bias. Returns its address, or 0. */
static uintptr_t find_dynamic(struct exports *exports, uintptr_t image)
{
	unsigned char ident[EI_NIDENT];
	uintptr_t dynamic = 0;
	Elf64_Phdr part;

	if (!copy(ident, image, sizeof(ident)) || memcmp(ident, ELFMAG, SELFMAG) != 0 ||
	    ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (size_t at = 0; exports_segment(image, &at, &part);) {
		if (part.p_type == PT_LOAD && !part.p_offset)
			exports->bias = image - part.p_vaddr;
		else if (part.p_type == PT_DYNAMIC)
			dynamic = part.p_vaddr;
	}
	return dynamic ? exports->bias + dynamic : 0;
}

/* glibc replaces these offsets by addresses as it loads a library, musl does not. */
static uintptr_t address_of(const struct exports *exports, uint64_t value)
{
	return value < exports->bias ? exports->bias + value : value;
}

int exports_open(struct exports *exports, uintptr_t image)
{
	uintptr_t at;

	*exports = (struct exports){0};
	at = find_dynamic(exports, image);
	for (unsigned int i = 0; at && i < MAX_DYNAMIC; i++, at += sizeof(Elf64_Dyn)) {
		uint64_t tag = memory_word(at), value = memory_word(at + offsetof(Elf64_Dyn, d_un));

		if (tag == DT_NULL)
			break;
		if (tag == DT_SYMTAB)
			exports->symbols = address_of(exports, value);
		else if (tag == DT_STRTAB)
			exports->strings = address_of(exports, value);
		else if (tag == DT_GNU_HASH)
			exports->gnu_hash = address_of(exports, value);
		else if (tag == DT_HASH)
			exports->hash = address_of(exports, value);
	}
	return exports->symbols && exports->strings && (exports->gnu_hash || exports->hash) ? 0 : -ENOEXEC;
}

/* dl_new_hash() of glibc's elf/dl-lookup.c, as the DT_GNU_HASH table uses it. */
static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Returns the address of a symbol with this index and name, or 0. */
static uintptr_t symbol_at(const struct exports *exports, uint32_t index, const char *name)
{
	char text[NAME_MAX_BYTES];
	Elf64_Sym symbol;

	if (!copy(&symbol, exports->symbols + (uint64_t)index * sizeof(symbol), sizeof(symbol)))
		return 0;
	memory_text(text, exports->strings + symbol.st_name, sizeof(text));
	return symbol.st_value && !strcmp(text, name) ? exports->bias + symbol.st_value : 0;
}

/* elf_hash() of the System V ABI. */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	return hash;
}

/* Number of buckets, first hashed symbol, words and shift of a bloom filter; filter, buckets, chains. */
static uintptr_t find_by_gnu_hash(const struct exports *exports, const char *name)
{
	uint32_t hash = gnu_hash_of(name), head[4], index, word;
	uintptr_t buckets, chains, found = 0;

	if (!copy(head, exports->gnu_hash, sizeof(head)) || !head[0])
		return 0;
	buckets = exports->gnu_hash + sizeof(head) + (uint64_t)head[2] * sizeof(uint64_t);
	chains = buckets + (uint64_t)head[0] * sizeof(uint32_t);
	index = memory_int(buckets + hash % head[0] * sizeof(uint32_t));
	if (index < head[1])
		return 0;
	for (int i = 0; i < MAX_CHAIN && !found; i++, index++) {
		word = memory_int(chains + (uint64_t)(index - head[1]) * sizeof(uint32_t));
		if ((word | 1) == (hash | 1))
			found = symbol_at(exports, index, name);
		if (word & 1) /* the last of the bucket */
			break;
	}
	return found;
}

/* Number of buckets and of symbols; the buckets, then each symbol's next one. Index 0 ends a bucket. */
static uintptr_t find_by_hash(const struct exports *exports, const char *name)
{
	uint32_t head[2], index;
	uintptr_t buckets, found = 0;

	if (!copy(head, exports->hash, sizeof(head)) || !head[0])
		return 0;
	buckets = exports->hash + sizeof(head);
	index = memory_int(buckets + hash_of(name) % head[0] * sizeof(uint32_t));
	for (int i = 0; i < MAX_CHAIN && !found && index && index < head[1]; i++) {
		found = symbol_at(exports, index, name);
		index = memory_int(buckets + ((uint64_t)head[0] + index) * sizeof(uint32_t));
	}
	return found;
}

uintptr_t exports_find(const struct exports *exports, const char *name)
{
	return exports->gnu_hash ? find_by_gnu_hash(exports, name) : find_by_hash(exports, name);
}
