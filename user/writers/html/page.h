/* SPDX-License-Identifier: MIT */
/* Writes an HTML page from a template: the output of functions replaces the markers in it. */
#ifndef WRITERS_HTML_PAGE_H
#define WRITERS_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

struct page_insertion {
	const char *marker; /* "@style@" */
	int (*write)(const void *context); /* returns 0 or -errno */
};

/* The insertions are in the order of their markers. Returns 0 or -errno, as writer.write() does. */
int page_write(const char *page, size_t bytes, const struct page_insertion *insertions, size_t count,
	       const void *context, FILE *out);

#endif
