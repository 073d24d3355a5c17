/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The ring between agent and loader: one sealed memfd per JVM, created by the loader, mapped by both.
 *
 *   page 0              struct duet_ring_page
 *   lanes[0].offset     sample lane: written by signal handlers; records are dropped when it is full
 *   lanes[1].offset     metadata lane: methods, code, threads
 *
 * The size of each lane in bytes is a power of two. Each lane is mapped twice, back to back, so that a record is
 * contiguous wherever it starts. A lane has many producers and one consumer.
 *
 * Producer: reserves space with a compare-and-swap on `head`, fills the record, and publishes it by storing its size
 * with release order. Consumer: loads the size with acquire order (pairs with that store), copies the record out,
 * zeroes it, and then advances `tail` with release order. That store pairs with the producer's acquire load of `tail`:
 * space is reused only after it reads as zero. A size of zero means "reserved, not yet published".
 *
 * The producer side is async-signal-safe. The consumer does not trust the shared memory: it keeps its own copies of the
 * positions it relies on.
 */
#pragma once

#include "duet_counters.h"
#include "duet_types.h"

#define DUET_RING_MAGIC 0x64756574u /* "duet" */
#define DUET_RING_PAGE 4096u
#define DUET_RING_MAX_RECORD (1u << 20) /* bytes, header included */
#define DUET_RING_ALIGN 8u

enum duet_lane { DUET_LANE_SAMPLE, DUET_LANE_METADATA, DUET_LANES };

struct duet_ring_lane {
	/* offset of the lane in the memfd, a multiple of the page size; written by the loader, then constant */
	uint64_t offset;
	uint64_t bytes;	 /* power of two; constant */
	uint64_t pad0[6];
	uint64_t head; /* written by producers: next free position; grows without wrapping */
	uint64_t pad1[7];
	uint64_t tail; /* written by the consumer: everything before this position is free */
	uint64_t pad2[7];
};
DUET_ASSERT_SIZE(struct duet_ring_lane, 192);

struct duet_ring_page {
	uint32_t magic;
	uint32_t version; /* DUET_AGENT_VERSION */
	uint64_t total_bytes;
	uint64_t handler_ns; /* time spent in the agent's signal handler, sum of all threads; relaxed atomic adds */
	uint64_t pad[5];
	struct duet_ring_lane lanes[DUET_LANES];
	uint64_t counters[64]; /* enum duet_agent_counter, relaxed atomic adds */
};
DUET_ASSERT_SIZE(struct duet_ring_page, 64 + 2 * 192 + 512);
_Static_assert(DUET_AGENT_COUNTER_MAX <= 64, "the ring page holds 64 counters");

struct duet_ring_record {
	uint32_t size; /* bytes, this header included, multiple of 8; 0 until published */
	uint16_t type; /* enum duet_agent_record_type */
	uint16_t reserved;
};
DUET_ASSERT_SIZE(struct duet_ring_record, 8);

static inline uint32_t duet_ring_record_size(uint32_t payload)
{
	return (uint32_t)((sizeof(struct duet_ring_record) + payload + DUET_RING_ALIGN - 1) & ~(DUET_RING_ALIGN - 1));
}

#ifndef __bpf__

/* One side's view of a lane. `data` is the start of the doubled mapping. */
struct duet_lane_view {
	struct duet_ring_lane *lane;
	unsigned char *data;
	uint64_t bytes; /* private copy: never read from the shared page again */
};

/*
 * Reserve room for `payload` bytes. Returns the record header (its `size` still reads zero), or NULL when the lane is
 * full. Async-signal-safe and lock-free: it retries only when another producer has advanced `head`. When that happens
 * between the two loads, `tail` may be past the `head` that was read.
 */
static inline struct duet_ring_record *duet_ring_reserve(struct duet_lane_view *view, uint32_t payload)
{
	uint64_t need = duet_ring_record_size(payload);
	uint64_t head = __atomic_load_n(&view->lane->head, __ATOMIC_RELAXED);

	do {
		uint64_t tail = __atomic_load_n(&view->lane->tail, __ATOMIC_ACQUIRE);

		if (need > DUET_RING_MAX_RECORD || head + need > tail + view->bytes)
			return 0;
	} while (!__atomic_compare_exchange_n(&view->lane->head, &head, head + need, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return (struct duet_ring_record *)(view->data + (head & (view->bytes - 1)));
}

/* Returns true if more than half of the lane waits for the consumer. */
static inline int duet_ring_is_half(const struct duet_lane_view *view)
{
	uint64_t tail = __atomic_load_n(&view->lane->tail, __ATOMIC_RELAXED);

	return __atomic_load_n(&view->lane->head, __ATOMIC_RELAXED) > tail + view->bytes / 2;
}

/* Publish a record that was reserved for `payload` bytes. Async-signal-safe. */
static inline void duet_ring_commit(struct duet_ring_record *record, uint16_t type, uint32_t payload)
{
	record->type = type;
	record->reserved = 0;
	__atomic_store_n(&record->size, duet_ring_record_size(payload), __ATOMIC_RELEASE);
}

static inline void duet_ring_count_all(struct duet_ring_page *page, enum duet_agent_counter counter, uint64_t count)
{
	__atomic_fetch_add(&page->counters[counter], count, __ATOMIC_RELAXED);
}

static inline void duet_ring_count(struct duet_ring_page *page, enum duet_agent_counter counter)
{
	duet_ring_count_all(page, counter, 1);
}

#endif /* !__bpf__ */
