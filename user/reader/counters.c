/* SPDX-License-Identifier: MIT */
#include "reader/counters.h"

#include <stddef.h>

#include "hotspot/jvmstructs.h"
#include "reader/exports.h"
#include "reader/memory.h"

#define WORD sizeof(uintptr_t)
#define VARIABLES_MAX (8u << 20) /* bytes of all variables that are searched; JDK 25 has 1 MB */
#define OBJECTS_MAX 65536 /* objects that are looked into; JDK 25 has some hundreds */
#define OBJECT_WORDS 8 /* words of a PerfLong, perfData.hpp; PerfData::_pdep is the fifth */
#define CHUNK_WORDS 512

struct search {
	const char *name;
	uintptr_t low, high; /* libjvm's image */
	size_t variables, objects; /* what is left to search */
};

/* Returns the counter's value if an object with virtual functions of libjvm is there, and refers to the counter. */
static uintptr_t counter_of(struct search *search, uintptr_t object)
{
	uintptr_t words[OBJECT_WORDS], value = 0;

	if (!object || object % WORD || (object >= search->low && object < search->high) || !search->objects ||
	    memory_take(words, object, sizeof(words)) < sizeof(words) || words[0] < search->low ||
	    words[0] >= search->high)
		return 0;
	search->objects--;
	for (size_t i = 1; i < OBJECT_WORDS && !value; i++)
		value = words[i] && words[i] % WORD == 0 ? perf_counter_of_entry(words[i], search->name) : 0;
	return value;
}

static uintptr_t find_in(struct search *search, uintptr_t at, uintptr_t end)
{
	uintptr_t words[CHUNK_WORDS], value = 0;
	size_t count = 1;

	for (; at < end && search->variables >= sizeof(words) && count && !value; at += sizeof(words)) {
		search->variables -= sizeof(words);
		count = memory_copy(words, at, sizeof(words)) / WORD;
		for (size_t i = 0; i < count && at + i * WORD < end && !value; i++)
			value = counter_of(search, words[i]);
	}
	return value;
}

uintptr_t counters_find(uintptr_t libjvm, const char *name)
{
	struct search search = {.name = name, .low = libjvm, .variables = VARIABLES_MAX, .objects = OBJECTS_MAX};
	uintptr_t value = 0, bias = 0, end;
	Elf64_Phdr part;

	for (size_t at = 0; exports_segment(libjvm, &at, &part);) {
		if (part.p_type != PT_LOAD)
			continue;
		if (!search.high) /* the first segment begins with the ELF header */
			bias = libjvm - part.p_vaddr;
		end = bias + part.p_vaddr + part.p_memsz;
		search.high = end > search.high ? end : search.high;
	}
	memory_forget();
	for (size_t at = 0; !value && exports_segment(libjvm, &at, &part);) {
		uintptr_t begin = (bias + part.p_vaddr + WORD - 1) / WORD * WORD;

		if (part.p_type == PT_LOAD && part.p_flags & PF_W && part.p_memsz <= VARIABLES_MAX)
			value = find_in(&search, begin, bias + part.p_vaddr + part.p_memsz);
	}
	return value;
}
