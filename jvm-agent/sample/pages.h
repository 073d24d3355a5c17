/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Allocates zeroed memory for signal handlers. The system provides each page when it is first touched. Huge pages are
 * never used (transparent_hugepage=always): a first touch would clear 2 MiB in a handler. Returns NULL with errno set.
 */
void *pages_new(size_t bytes);
void pages_free(void *pages, size_t bytes); /* NULL is fine */
/* Returns the PROT_* of the page at the address, or -errno. Not for signal handlers. */
int pages_rights(uintptr_t address);
