/* SPDX-License-Identifier: MIT */
#include "collect/tables/arrays.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

int array_init(struct array *array, const struct unwind_tables_map *map, size_t element_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	array->fd = map->fd;
	array->bytes = (map->entries * element_bytes + page - 1) / page * page;
	return extents_init(&array->free, map->entries);
}

int array_map(struct array *array, const struct unwind_tables_map *map)
{
	void *at = mmap(NULL, array->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, (off_t)map->offset);

	if (at == MAP_FAILED)
		return -errno;
	array->at = at;
	return 0;
}

int array_write(const struct array *array, size_t offset, const void *data, size_t bytes)
{
	size_t before = offset % (size_t)sysconf(_SC_PAGESIZE);
	char *at;

	if (array->at) {
		memcpy((char *)array->at + offset, data, bytes);
		return 0;
	}
	at = mmap(NULL, before + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, array->fd, (off_t)(offset - before));
	if (at == MAP_FAILED)
		return -errno;
	memcpy(at + before, data, bytes);
	munmap(at, before + bytes);
	return 0;
}

int arrays_open_read_only(int fd)
{
	int read_only = io_open_again(fd, O_RDONLY);

	if (read_only < 0)
		return read_only;
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	if (fchmod(fd, 0400) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int err = -errno;

		close(read_only);
		return err;
	}
	return read_only;
}
