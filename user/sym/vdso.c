/* SPDX-License-Identifier: MIT */
#include "sym/vdso.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Returns 0 if the kernel mapped no vdso for us. */
static size_t find_own_bytes(uintptr_t start)
{
	struct maps maps = {0};
	const struct mapping *mapping;
	size_t bytes = 0;

	if (start && !maps_read(&maps, getpid())) {
		mapping = maps_find(&maps, start);
		if (mapping && mapping->start == start && !strcmp(mapping->path, "[vdso]"))
			bytes = mapping->end - mapping->start;
	}
	maps_release(&maps);
	return bytes;
}

/* A 32-bit process, or one of x32, has nothing above 4 GB. In a 64-bit process the kernel puts the vdso above 4 GB. */
void *vdso_of(const struct mapping *mapping, size_t *ret_bytes)
{
	static size_t own_bytes;
	uintptr_t own = getauxval(AT_SYSINFO_EHDR);

	if (!own_bytes)
		own_bytes = find_own_bytes(own);
	if (!own_bytes || mapping->end - mapping->start != own_bytes || mapping->start <= UINT32_MAX)
		return NULL;
	*ret_bytes = own_bytes;
	return (void *)own;
}
