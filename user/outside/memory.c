/* SPDX-License-Identifier: MIT */
#include "outside/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "outside/exports.h"

#define PAGE 4096u
#define PAGES 64u /* 256 kB; a power of two */

struct page {
	uintptr_t address;
	uint64_t epoch; /* in which it was read */
	unsigned char bytes[PAGE];
};

static struct {
	pid_t pid;
	uint64_t epoch;
	struct exports exports;
	struct page pages[PAGES];
} memory;

/* One piece for each page: the kernel promises short reads only between pieces. */
size_t memory_copy(void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote[MEMORY_COPY_MAX / PAGE + 1];
	unsigned long count = 0;
	ssize_t copied;

	if (bytes > MEMORY_COPY_MAX || from + bytes < from)
		return 0;
	for (size_t done = 0; done < bytes; count++) {
		size_t piece = PAGE - (from + done) % PAGE;

		piece = piece < bytes - done ? piece : bytes - done;
		remote[count] = (struct iovec){(void *)(from + done), piece};
		done += piece;
	}
	copied = process_vm_readv(memory.pid, &local, 1, remote, count, 0);
	return copied > 0 ? (size_t)copied : 0;
}

/* Returns the page that holds the address; NULL when it cannot be read. */
static const unsigned char *page_of(uintptr_t address)
{
	struct page *page = &memory.pages[address / PAGE % PAGES];

	address -= address % PAGE;
	if (page->epoch == memory.epoch && page->address == address)
		return page->bytes;
	page->epoch = 0;
	if (memory_copy(page->bytes, address, PAGE) < PAGE)
		return NULL;
	page->epoch = memory.epoch;
	page->address = address;
	return page->bytes;
}

/* Reads one number, which may lie across two pages. */
static uint64_t number_at(uintptr_t address, size_t bytes)
{
	uint64_t number = 0;
	const unsigned char *page;

	if (address % PAGE > PAGE - bytes)
		return memory_copy(&number, address, bytes) == bytes ? number : 0;
	page = page_of(address);
	if (page)
		memcpy(&number, page + address % PAGE, bytes); /* little endian, as all machines that duet runs on */
	return number;
}

uintptr_t memory_word(uintptr_t address)
{
	return number_at(address, sizeof(uintptr_t));
}

uint32_t memory_int(uintptr_t address)
{
	return (uint32_t)number_at(address, sizeof(uint32_t));
}

uint16_t memory_half(uintptr_t address)
{
	return (uint16_t)number_at(address, sizeof(uint16_t));
}

uint8_t memory_byte(uintptr_t address)
{
	return (uint8_t)number_at(address, sizeof(uint8_t));
}

void memory_text(char *text, uintptr_t address, size_t size)
{
	size_t length = 0;
	const unsigned char *page = NULL;

	for (; address && length + 1 < size; length++) {
		uintptr_t at = address + length;

		if (!page || at % PAGE == 0)
			page = page_of(at);
		text[length] = page ? (char)page[at % PAGE] : '\0';
		if (!text[length])
			break;
	}
	text[length] = '\0';
}

void memory_renew(void)
{
	memory.epoch++;
}

int memory_open(pid_t pid, uintptr_t libjvm)
{
	memory.pid = pid;
	memory.epoch++;
	errno = 0;
	if (!memory_word(libjvm))
		return errno == EPERM ? -EPERM : -ENOEXEC;
	return exports_open(&memory.exports, libjvm);
}

uintptr_t memory_symbol(const char *name)
{
	return exports_find(&memory.exports, name);
}
