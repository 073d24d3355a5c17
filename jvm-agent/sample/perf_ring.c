/* SPDX-License-Identifier: MIT */
#include "sample/perf_ring.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "sigsafe.h"

/* A record as PERF_RING_SAMPLES makes it; `count` addresses follow. */
struct tick_record {
	struct perf_event_header header;
	uint64_t time_ns;
	uint64_t count;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

size_t perf_ring_bytes(void)
{
	return 2 * page_bytes();
}

static uint64_t head_of(const struct perf_event_mmap_page *page)
{
	/* Pairs with the kernel's barrier: once the head is visible, so are the records before it. */
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static void set_tail(struct perf_event_mmap_page *page, uint64_t tail)
{
	/* Gives the room back after the last read. */
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

/* Copies `bytes` bytes that begin `at` bytes after the ring's first byte. They may wrap around the ring's end. */
static void read_at(const struct perf_event_mmap_page *page, uint64_t at, void *to, size_t bytes)
{
	const size_t size = page_bytes();
	const unsigned char *data = (const unsigned char *)page + size;
	size_t offset = at % size;
	size_t piece = size - offset < bytes ? size - offset : bytes;

	memcpy(to, data + offset, piece);
	memcpy((unsigned char *)to + piece, data, bytes - piece);
}

/* Copies the addresses, but not the marks between them, such as PERF_CONTEXT_KERNEL. */
static void read_frames(const struct perf_event_mmap_page *page, uint64_t at, uint64_t count, struct kernel_stack *ret)
{
	for (uint64_t i = 0; i < count && ret->depth < DUET_MAX_STACK; i++) {
		uint64_t address;

		read_at(page, at + i * sizeof(address), &address, sizeof(address));
		if (address < (uint64_t)PERF_CONTEXT_MAX)
			ret->frames[ret->depth++] = address;
	}
}

/* Returns true if there is a record of a tick at `at`, not later than `until_ns`. */
static bool read_record(const struct perf_event_mmap_page *page, uint64_t at, size_t bytes, uint64_t until_ns,
			struct tick_record *ret)
{
	if (bytes < sizeof(*ret))
		return false;
	read_at(page, at, ret, sizeof(*ret));
	return ret->header.type == PERF_RECORD_SAMPLE && ret->time_ns <= until_ns &&
	       ret->count <= (bytes - sizeof(*ret)) / sizeof(uint64_t);
}

/* Moves *at to the oldest tick from there on, past other records, and stores its record. False: there is none. */
static bool find_tick(const struct perf_event_mmap_page *page, uint64_t *at, uint64_t until_ns,
		      struct tick_record *ret)
{
	uint64_t head = head_of(page);

	while (head - *at >= sizeof(ret->header) && head - *at <= page_bytes()) {
		read_at(page, *at, &ret->header, sizeof(ret->header));
		if (ret->header.size < sizeof(ret->header) || ret->header.size > head - *at)
			return false;
		if (read_record(page, *at, ret->header.size, until_ns, ret))
			return true;
		*at += ret->header.size;
	}
	return false;
}

bool perf_ring_take(struct perf_event_mmap_page *page, uint64_t until_ns, struct kernel_stack *ret)
{
	uint64_t at = page->data_tail;
	struct tick_record record;

	ret->time_ns = 0;
	ret->depth = 0;
	if (!find_tick(page, &at, until_ns, &record))
		return false;
	ret->time_ns = record.time_ns;
	read_frames(page, at + sizeof(record), record.count, ret);
	at += record.header.size;
	set_tail(page, at);
	return find_tick(page, &at, until_ns, &record);
}

void perf_ring_clear(struct perf_event_mmap_page *page)
{
	set_tail(page, head_of(page));
}
