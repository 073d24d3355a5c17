/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <dlfcn.h>
#include <string.h>

#include "libc_versions.h"

static void *library;

void memory_open(void *libjvm)
{
	library = libjvm;
}

uintptr_t memory_symbol(const char *name)
{
	return library ? (uintptr_t)dlsym(library, name) : 0;
}

void memory_text(char *text, uintptr_t address, size_t size)
{
	text[0] = '\0';
	if (address)
		strncat(text, (const char *)address, size - 1);
}
