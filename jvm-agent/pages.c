/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include <sys/mman.h>

void *pages_new(size_t bytes)
{
	void *pages =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	madvise(pages, bytes, MADV_NOHUGEPAGE); /* EINVAL from a kernel without huge pages */
	return pages;
}

void pages_free(void *pages, size_t bytes)
{
	if (pages)
		munmap(pages, bytes);
}
