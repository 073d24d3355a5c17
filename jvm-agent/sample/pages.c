/* SPDX-License-Identifier: MIT */
#include "sample/pages.h"

#include <errno.h>
#include <stdio.h>
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

int pages_rights(uintptr_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	int rights = -ENOENT;
	char line[512], flags[5];

	if (!maps)
		return -errno;
	/* If a line is longer than the buffer, the rest of it does not look like the beginning of a line. */
	while (rights < 0 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s ", &start, &end, flags) == 3 && address >= start && address < end)
			rights = (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
				 (flags[2] == 'x' ? PROT_EXEC : 0);
	fclose(maps);
	return rights;
}
