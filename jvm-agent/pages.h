/* SPDX-License-Identifier: MIT */
#ifndef PAGES_H
#define PAGES_H

#include <stddef.h>

/*
 * Zeroed memory for signal handlers, taken from the system page by page as it is touched. Never in huge pages
 * (transparent_hugepage=always): the first touch would clear 2 MiB inside a handler. NULL with errno.
 */
void *pages_new(size_t bytes);
void pages_free(void *pages, size_t bytes); /* NULL is fine */

#endif
