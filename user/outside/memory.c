/* SPDX-License-Identifier: MIT */
#include "outside/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "outside/exports.h"

#define PAGE 4096u
#define PAGES 64u /* 256 kB */
#define TAKEN_PAGES 256u /* 1 MB */
/* reads of memory; a method has some 20, a compilation five for each method; the kernel takes no more at once */
#define NOTES_MAX 1024u
#define NOTES_TO_COMPARE 16u /* the last notes, among which a field that is read again is looked for */
#define NOTED_BYTES (512u << 10) /* bytes of the longest names and line table that are read */

struct page {
	uintptr_t address;
	uint64_t epoch; /* epoch in which it was read */
	unsigned char bytes[PAGE];
};

struct cache {
	struct page *pages;
	size_t count;
	uint64_t epoch; /* pages of other epochs are not valid */
	bool is_used; /* a page was read in this epoch */
};

static struct page word_pages[PAGES], taken_pages[TAKEN_PAGES];
static struct {
	pid_t pid;
	struct exports exports;
	struct cache words, taken;
} memory = {.words = {.pages = word_pages, .count = PAGES}, .taken = {.pages = taken_pages, .count = TAKEN_PAGES}};

static struct {
	bool is_on;
	bool is_full; /* there was no room for a note */
	size_t count, bytes;
	/* addresses in the other process, from the end of the array on: the last note is first */
	struct iovec pieces[NOTES_MAX];
	unsigned char noted[NOTED_BYTES], now[NOTED_BYTES]; /* the bytes of these pieces, also from the end on */
} notes;

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
static const unsigned char *page_of(struct cache *cache, uintptr_t address)
{
	struct page *page = &cache->pages[address / PAGE % cache->count];

	address -= address % PAGE;
	if (page->epoch == cache->epoch && page->address == address)
		return page->bytes;
	page->epoch = 0;
	if (memory_copy(page->bytes, address, PAGE) < PAGE)
		return NULL;
	page->epoch = cache->epoch;
	page->address = address;
	cache->is_used = true;
	return page->bytes;
}

static bool forget(struct cache *cache)
{
	bool was_used = cache->is_used;

	cache->epoch++;
	cache->is_used = false;
	return was_used;
}

/* Reads one number, which may lie across two pages. */
static uint64_t number_at(uintptr_t address, size_t bytes)
{
	uint64_t number = 0;
	const unsigned char *page;

	if (address % PAGE > PAGE - bytes)
		return memory_copy(&number, address, bytes) == bytes ? number : 0;
	page = page_of(&memory.words, address);
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
			page = page_of(&memory.words, at);
		text[length] = page ? (char)page[at % PAGE] : '\0';
		if (!text[length])
			break;
	}
	text[length] = '\0';
}

void memory_renew(void)
{
	forget(&memory.words);
}

/* ---- cached and noted memory ---- */

size_t memory_take(void *to, uintptr_t from, size_t bytes)
{
	size_t done = 0;

	if (bytes > MEMORY_COPY_MAX || from + bytes < from)
		return 0;
	while (done < bytes) {
		size_t offset = (from + done) % PAGE, piece = PAGE - offset;
		const unsigned char *page = page_of(&memory.taken, from + done);

		if (!page)
			break;
		piece = piece < bytes - done ? piece : bytes - done;
		memcpy((char *)to + done, page + offset, piece);
		done += piece;
	}
	return done;
}

bool memory_forget(void)
{
	return forget(&memory.taken);
}

void memory_note_all(void)
{
	notes.is_on = true;
	notes.is_full = false;
	notes.count = notes.bytes = 0;
}

/* True if one of the last notes has these bytes: some fields of a method are read more than once. */
static bool is_noted(uintptr_t address, const void *bytes, size_t count)
{
	const unsigned char *noted = notes.noted + NOTED_BYTES - notes.bytes;

	for (size_t i = 0; i < notes.count && i < NOTES_TO_COMPARE; i++) {
		const struct iovec *piece = &notes.pieces[NOTES_MAX - notes.count + i];
		size_t at = address - (uintptr_t)piece->iov_base;

		if (at < piece->iov_len && count <= piece->iov_len - at && !memcmp(noted + at, bytes, count))
			return true;
		noted += piece->iov_len;
	}
	return false;
}

/* Adds the bytes to the last note if they follow it. The kernel takes longer for a piece than for some bytes. */
static bool add_to_last(uintptr_t address, const void *bytes, size_t count)
{
	struct iovec *last = &notes.pieces[NOTES_MAX - notes.count];
	unsigned char *begin = notes.noted + NOTED_BYTES - notes.bytes;

	if (!notes.count || address != (uintptr_t)last->iov_base + last->iov_len || address % PAGE == 0)
		return false;
	memmove(begin - count, begin, last->iov_len);
	memcpy(begin - count + last->iov_len, bytes, count);
	last->iov_len += count;
	notes.bytes += count;
	return true;
}

void memory_note(uintptr_t address, const void *bytes, size_t count)
{
	if (!notes.is_on || !count || is_noted(address, bytes, count))
		return;
	if (notes.count == NOTES_MAX || count > NOTED_BYTES - notes.bytes) {
		notes.is_full = true;
		return;
	}
	if (add_to_last(address, bytes, count))
		return;
	notes.count++;
	notes.bytes += count;
	notes.pieces[NOTES_MAX - notes.count] = (struct iovec){(void *)address, count};
	memcpy(notes.noted + NOTED_BYTES - notes.bytes, bytes, count);
}

bool memory_is_as_noted(void)
{
	size_t begin = NOTED_BYTES - notes.bytes;
	struct iovec local = {.iov_base = notes.now + begin, .iov_len = notes.bytes};

	notes.is_on = false;
	if (notes.is_full)
		return false;
	return process_vm_readv(memory.pid, &local, 1, notes.pieces + NOTES_MAX - notes.count, notes.count, 0) ==
		       (ssize_t)notes.bytes &&
	       !memcmp(notes.noted + begin, notes.now + begin, notes.bytes);
}

int memory_open(pid_t pid, uintptr_t libjvm)
{
	memory.pid = pid;
	memory_renew();
	memory_forget();
	errno = 0;
	if (!memory_word(libjvm))
		return errno == EPERM ? -EPERM : -ENOEXEC;
	return exports_open(&memory.exports, libjvm);
}

uintptr_t memory_symbol(const char *name)
{
	return exports_find(&memory.exports, name);
}
