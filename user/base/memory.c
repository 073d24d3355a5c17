/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* AddressSanitizer maps far more than it uses, and keeps what is freed for a while: only what is allocated counts. */
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED 1
size_t __sanitizer_get_current_allocated_bytes(void);
void __lsan_do_leak_check(void);
void __wrap__exit(int code);
void __real__exit(int code);

/* The linker puts this in the place of _exit(), with which the reader, the recorder and others end. */
void __wrap__exit(int code)
{
	__lsan_do_leak_check();
	__real__exit(code);
}
#else
#define IS_SANITIZED 0
#define __sanitizer_get_current_allocated_bytes() ((size_t)0)
#endif

#define MAPPED_FROM_BYTES (128 << 10)
#define STATM_BYTES 256
#define STATM_DATA 5 /* field number in proc(5), counted from 0; the unit is pages */
#define STATUS_BYTES 8192
#define PAGES_AT_ONCE 4096

void memory_prepare(void)
{
#ifdef __GLIBC__
	/* Once set, the threshold no longer grows when a large block is freed. */
	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES);
	mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_FROM_BYTES);
	mallopt(M_MMAP_MAX, 1 << 20);
#endif
}

int memory_limit(size_t bytes)
{
	struct rlimit limit;

	if (IS_SANITIZED)
		return 0;
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

size_t memory_data(void)
{
	unsigned long pages = 0;
	char *next;
	BUF(text);

	if (IS_SANITIZED)
		return __sanitizer_get_current_allocated_bytes();
	if (!io_read_file(AT_FDCWD, "/proc/self/statm", STATM_BYTES, &text)) {
		next = text.data;
		for (int i = 0; i <= STATM_DATA; i++)
			pages = strtoul(next, &next, 10);
	}
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

void memory_resident(struct memory_resident *ret)
{
	BUF(text);

	*ret = (struct memory_resident){0};
	if (!io_read_file(AT_FDCWD, "/proc/self/status", STATUS_BYTES, &text)) {
		ret->own = IS_SANITIZED ? memory_data() : io_number_of(text.data, "\nRssAnon:") << 10;
		ret->files = io_number_of(text.data, "\nRssFile:") << 10;
	}
}

size_t memory_touched(const void *at, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), touched = 0, len;
	unsigned char is_there[PAGES_AT_ONCE];
	const char *next = at;

	for (; bytes; bytes -= len, next += len) {
		len = bytes < PAGES_AT_ONCE * page ? bytes : PAGES_AT_ONCE * page;
		if (mincore((void *)next, len, is_there) < 0)
			return touched;
		for (size_t i = 0; i < (len + page - 1) / page; i++)
			touched += is_there[i] & 1 ? page : 0;
	}
	return touched;
}

size_t memory_used(void)
{
#if defined(__GLIBC__) && !IS_SANITIZED
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
