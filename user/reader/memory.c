/* SPDX-License-Identifier: MIT */
#include "reader/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "reader/exports.h"

#define PAGE 4096u
#define PAGES 64u /* 256 kB */
#define TAKEN_PAGES 512u /* 2 MB */
#define WAYS 4u /* pages with the same hash that are kept */
#define NOTES_MAX 4096u /* reads of memory; a method has some 20, a compilation five for each method */
#define NOTES_TO_COMPARE 16u /* the last notes, among which a field that is read again is looked for */
#define NOTED_BYTES (512u << 10) /* bytes of the longest names and line table that are read */
#define SPANS_MAX 1024u /* the kernel takes no more pieces at once: UIO_MAXIOV */
#define SPANS_TO_COMPARE 16u /* the last spans, among which one with the page of a note is looked for */
#define SPAN_BYTES (SPANS_MAX * PAGE + NOTED_BYTES)

/* What is searched is apart from the bytes, so that a search reads few lines of the CPU's cache. */
struct page {
	uintptr_t address;
	uint64_t epoch; /* epoch in which it was read */
	uint64_t used; /* when: the cache's `uses` */
};

struct cache {
	struct page *pages;
	unsigned char (*bytes)[PAGE]; /* of each page */
	size_t count;
	uint64_t epoch; /* pages of other epochs are not valid */
	uint64_t uses;
};

static struct page word_pages[PAGES], taken_pages[TAKEN_PAGES];
static unsigned char word_bytes[PAGES][PAGE], taken_bytes[TAKEN_PAGES][PAGE];
static struct {
	pid_t pid;
	struct exports exports;
	struct cache words, taken;
} memory = {
	.words = {.pages = word_pages, .bytes = word_bytes, .count = PAGES},
	.taken = {.pages = taken_pages, .bytes = taken_bytes, .count = TAKEN_PAGES},
};

struct note {
	uintptr_t address;
	const unsigned char *bytes; /* in notes.bytes */
	uint32_t count;
	uint16_t span;
};

static struct {
	bool is_on;
	bool is_full; /* there was no room for a note */
	size_t count, used;
	struct note all[NOTES_MAX];
	unsigned char bytes[NOTED_BYTES];
} notes;

/* What is read to compare the notes: the part of a page in which notes lie. */
static struct {
	size_t count;
	/* in the other process; from the end of the array on, so that the last is first */
	struct iovec pieces[SPANS_MAX];
	unsigned char *begins[SPANS_MAX]; /* where each is in `bytes` */
	unsigned char bytes[SPAN_BYTES];
} spans;

/* Adds one piece for each page: the kernel promises short reads only between pieces. */
static unsigned long add_pages(struct iovec *remote, unsigned long used, uintptr_t from, size_t bytes)
{
	for (size_t done = 0; done < bytes; used++) {
		size_t piece = PAGE - (from + done) % PAGE;

		piece = piece < bytes - done ? piece : bytes - done;
		remote[used] = (struct iovec){(void *)(from + done), piece};
		done += piece;
	}
	return used;
}

size_t memory_copy_pieces(void *to, const struct memory_piece *pieces, size_t count)
{
	struct iovec local = {.iov_base = to}, remote[MEMORY_COPY_MAX / PAGE + 2 * MEMORY_PIECES_MAX];
	unsigned long used = 0;
	ssize_t copied;

	for (size_t i = 0; i < count && i < MEMORY_PIECES_MAX; i++) {
		const struct memory_piece *piece = &pieces[i];

		if (piece->bytes > MEMORY_COPY_MAX - local.iov_len || piece->from + piece->bytes < piece->from)
			return 0;
		used = add_pages(remote, used, piece->from, piece->bytes);
		local.iov_len += piece->bytes;
	}
	copied = process_vm_readv(memory.pid, &local, 1, remote, used, 0);
	return copied > 0 ? (size_t)copied : 0;
}

size_t memory_copy(void *to, uintptr_t from, size_t bytes)
{
	const struct memory_piece piece = {from, bytes};

	return memory_copy_pieces(to, &piece, 1);
}

/* Returns the page that begins at the address, if it is there; otherwise one that may be replaced. */
static struct page *find_page(const struct cache *cache, uintptr_t address)
{
	size_t set = (address / PAGE * 0x9e3779b97f4a7c15 >> 32) % (cache->count / WAYS);
	struct page *pages = &cache->pages[set * WAYS], *oldest = pages;

	for (struct page *page = pages; page < pages + WAYS; page++) {
		if (page->epoch == cache->epoch && page->address == address)
			return page;
		if (page->epoch != cache->epoch || (oldest->epoch == cache->epoch && page->used < oldest->used))
			oldest = page;
	}
	return oldest;
}

/* Returns the page that holds the address; NULL when it cannot be read. */
static const unsigned char *page_of(struct cache *cache, uintptr_t address)
{
	uintptr_t begin = address - address % PAGE;
	struct page *page = find_page(cache, begin);
	unsigned char *bytes = cache->bytes[page - cache->pages];

	page->used = ++cache->uses;
	if (page->epoch == cache->epoch && page->address == begin)
		return bytes;
	page->epoch = 0;
	if (memory_copy(bytes, begin, PAGE) < PAGE)
		return NULL;
	page->epoch = cache->epoch;
	page->address = begin;
	return bytes;
}

/* Reads one number, which may lie across two pages. While notes are taken, it is one of them. */
static uint64_t number_at(uintptr_t address, size_t bytes)
{
	uint64_t number = 0;
	const unsigned char *page;

	if (notes.is_on) {
		if (memory_take(&number, address, bytes) < bytes)
			return 0;
		memory_note(address, &number, bytes);
		return number;
	}
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
	memory.words.epoch++;
}

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

void memory_forget(void)
{
	memory.taken.epoch++;
}

void memory_note_all(void)
{
	notes.is_on = true;
	notes.is_full = false;
	notes.count = notes.used = 0;
}

/* True if one of the last notes has these bytes: some fields of a method are read more than once. */
static bool is_noted(uintptr_t address, const void *bytes, size_t count)
{
	for (size_t i = 0; i < notes.count && i < NOTES_TO_COMPARE; i++) {
		const struct note *note = &notes.all[notes.count - 1 - i];
		size_t at = address - note->address;

		if (at < note->count && count <= note->count - at && !memcmp(note->bytes + at, bytes, count))
			return true;
	}
	return false;
}

void memory_note(uintptr_t address, const void *bytes, size_t count)
{
	if (!notes.is_on || !count || is_noted(address, bytes, count))
		return;
	if (notes.count == NOTES_MAX || count > NOTED_BYTES - notes.used) {
		notes.is_full = true;
		return;
	}
	memcpy(notes.bytes + notes.used, bytes, count);
	notes.all[notes.count++] = (struct note){address, notes.bytes + notes.used, (uint32_t)count, 0};
	notes.used += count;
}

/* Makes the span contain the note, if both begin in one page. The kernel takes longer for a piece than for a page. */
static bool span_extend(struct iovec *span, const struct note *note)
{
	uintptr_t begin = (uintptr_t)span->iov_base, end = begin + span->iov_len;
	uintptr_t note_end = note->address + note->count;

	if (begin / PAGE != note->address / PAGE)
		return false;
	begin = begin < note->address ? begin : note->address;
	end = end > note_end ? end : note_end;
	*span = (struct iovec){(void *)begin, end - begin};
	return true;
}

/* Finds or makes the note's span. Returns false when there are too many. */
static bool span_note(struct note *note)
{
	for (size_t i = 0; i < spans.count && i < SPANS_TO_COMPARE; i++)
		if (span_extend(&spans.pieces[SPANS_MAX - spans.count + i], note)) {
			note->span = (uint16_t)(SPANS_MAX - spans.count + i);
			return true;
		}
	if (spans.count == SPANS_MAX)
		return false;
	note->span = (uint16_t)(SPANS_MAX - ++spans.count);
	spans.pieces[note->span] = (struct iovec){(void *)note->address, note->count};
	return true;
}

/* Reads all spans, that of the first note last. Returns false when this is not possible. */
static bool spans_read(void)
{
	size_t first = SPANS_MAX - spans.count, bytes = 0;
	struct iovec local = {.iov_base = spans.bytes};

	for (size_t i = first; i < SPANS_MAX; i++) {
		spans.begins[i] = spans.bytes + bytes;
		bytes += spans.pieces[i].iov_len;
	}
	local.iov_len = bytes;
	return bytes <= sizeof(spans.bytes) &&
	       process_vm_readv(memory.pid, &local, 1, spans.pieces + first, spans.count, 0) == (ssize_t)bytes;
}

/* Drops the pages from which the note was taken. */
static void drop(const struct note *note)
{
	uintptr_t begin = note->address - note->address % PAGE;

	for (; begin < note->address + note->count; begin += PAGE)
		find_page(&memory.taken, begin)->epoch = 0;
}

bool memory_is_as_noted(void)
{
	bool is_read = !notes.is_full, is_same;

	notes.is_on = false;
	spans.count = 0;
	for (size_t i = 0; is_read && i < notes.count; i++)
		is_read = span_note(&notes.all[i]);
	is_same = is_read = is_read && spans_read();
	for (size_t i = 0; i < notes.count; i++) {
		const struct note *note = &notes.all[i];
		size_t at = note->address - (uintptr_t)spans.pieces[note->span].iov_base;

		if (is_read && !memcmp(spans.begins[note->span] + at, note->bytes, note->count))
			continue;
		drop(note);
		is_same = false;
	}
	return is_same;
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
