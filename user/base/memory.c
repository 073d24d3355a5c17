/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#define MAPPED_FROM_BYTES (128 << 10)
#define STATM_BYTES 256
#define STATM_RESIDENT 1 /* proc(5), counted from 0, in pages */
#define STATM_DATA 5

void memory_prepare(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES); /* set, it no longer grows with each block that is freed */
	mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_FROM_BYTES);
	mallopt(M_MMAP_MAX, 1 << 20);
#endif
}

int memory_limit(size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) < 0)
		return -errno;
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

size_t memory_limit_now(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_cur > SIZE_MAX ? SIZE_MAX : limit.rlim_cur;
}

static size_t read_statm(int field)
{
	unsigned long pages = 0;
	char *next;
	struct buf text;

	buf_init(&text);
	if (!io_read_file(AT_FDCWD, "/proc/self/statm", STATM_BYTES, &text)) {
		next = text.data;
		for (int i = 0; i <= field; i++)
			pages = strtoul(next, &next, 10);
	}
	buf_release(&text);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t memory_resident(void)
{
	return read_statm(STATM_RESIDENT);
}

size_t memory_data(void)
{
	return read_statm(STATM_DATA);
}

size_t memory_used(void)
{
#ifdef __GLIBC__
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
#else
	return memory_data();
#endif
}

void memory_trim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
