/* SPDX-License-Identifier: MIT */
#include "collect/records/agent_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "collect/records/validate.h"

#define LANE_MAX_BYTES (1ul << 30)
#define RECORD_BYTES 4096 /* first size of the private copy; most records are smaller */

/* The agent may write anything into the shared page at any time, so values that the loader relies on are kept here. */
struct lane {
	struct duet_ring_lane *shared;
	unsigned char *data; /* the lane, mapped twice, back to back */
	uint64_t bytes;
	uint64_t tail;
};

struct agent_ring {
	int fd;
	size_t bytes; /* of the memfd */
	size_t page_bytes;
	struct duet_ring_page *page;
	struct lane lanes[DUET_LANES];
	struct duet_ring_record *record; /* private copy of the current record */
	size_t record_bytes; /* room for the copy; grows up to DUET_RING_MAX_RECORD */
};

static size_t round_up_power(size_t bytes, size_t least)
{
	size_t power = least;

	while (power < bytes)
		power *= 2;
	return power;
}

size_t agent_ring_lane_bytes(size_t bytes)
{
	return round_up_power(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

static int make_memfd(size_t bytes)
{
	int fd = memfd_create("duet-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	/* Sealed against shrinking: with a shorter file, an access to the mapping would be a SIGBUS for either side. */
	if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Maps the lane twice, so that a record is contiguous wherever it starts. */
static int map_lane(struct lane *lane, int fd, uint64_t offset)
{
	unsigned char *room = mmap(NULL, 2 * lane->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return -errno;
	lane->data = room;
	for (unsigned i = 0; i < 2; i++)
		if (mmap(room + i * lane->bytes, lane->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)offset) == MAP_FAILED)
			return -errno;
	return 0;
}

static int map_ring(struct agent_ring *ring)
{
	uint64_t offset = ring->page_bytes;
	void *page = mmap(NULL, ring->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	int err = 0;

	if (page == MAP_FAILED)
		return -errno;
	ring->page = page;
	ring->page->magic = DUET_RING_MAGIC;
	ring->page->version = DUET_AGENT_VERSION;
	ring->page->total_bytes = ring->bytes;
	for (unsigned i = 0; i < DUET_LANES && err == 0; i++) {
		struct lane *lane = &ring->lanes[i];

		lane->shared = &ring->page->lanes[i];
		lane->shared->offset = offset;
		lane->shared->bytes = lane->bytes;
		err = map_lane(lane, ring->fd, offset);
		offset += lane->bytes;
	}
	return err;
}

int agent_ring_new(struct agent_ring **ret, size_t sample_bytes, size_t metadata_bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct agent_ring *ring;
	int err;

	if (sample_bytes > LANE_MAX_BYTES || metadata_bytes > LANE_MAX_BYTES)
		return -EINVAL;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ring->fd = -1;
	ring->page_bytes = page_bytes;
	ring->lanes[DUET_LANE_SAMPLE].bytes = agent_ring_lane_bytes(sample_bytes);
	ring->lanes[DUET_LANE_METADATA].bytes = agent_ring_lane_bytes(metadata_bytes);
	ring->bytes = page_bytes + ring->lanes[DUET_LANE_SAMPLE].bytes + ring->lanes[DUET_LANE_METADATA].bytes;
	err = -ENOMEM;
	ring->record = malloc(RECORD_BYTES);
	ring->record_bytes = RECORD_BYTES;
	if (!ring->record)
		goto out;
	err = ring->fd = make_memfd(ring->bytes);
	if (err < 0)
		goto out;
	err = map_ring(ring);
	if (err == 0)
		*ret = ring;
out:
	if (err < 0)
		agent_ring_free(ring);
	return err;
}

void agent_ring_free(struct agent_ring *ring)
{
	if (!ring)
		return;
	for (unsigned i = 0; i < DUET_LANES; i++)
		if (ring->lanes[i].data)
			munmap(ring->lanes[i].data, 2 * ring->lanes[i].bytes);
	if (ring->page)
		munmap(ring->page, ring->page_bytes);
	agent_ring_close_fd(ring);
	free(ring->record);
	free(ring);
}

int agent_ring_fd(const struct agent_ring *ring)
{
	return ring->fd;
}

void agent_ring_close_fd(struct agent_ring *ring)
{
	io_close(&ring->fd);
}

size_t agent_ring_bytes(const struct agent_ring *ring)
{
	return ring->bytes;
}

size_t agent_ring_touched(const struct agent_ring *ring)
{
	size_t bytes = ring->page_bytes;

	for (unsigned i = 0; i < DUET_LANES; i++)
		bytes += memory_touched(ring->lanes[i].data, ring->lanes[i].bytes);
	return bytes;
}

/* Without memory for a record, only its header is copied, with a type that agent_record_check() refuses. */
static void copy_record(struct agent_ring *ring, const void *place, size_t size)
{
	size_t room = size > ring->record_bytes ? round_up_power(size, RECORD_BYTES) : 0;
	void *grown = room ? realloc(ring->record, room) : NULL;

	if (grown) {
		ring->record = grown;
		ring->record_bytes = room;
	}
	if (size <= ring->record_bytes) {
		memcpy(ring->record, place, size);
		return;
	}
	memcpy(ring->record, place, sizeof(*ring->record));
	ring->record->type = 0;
}

/*
 * Copies the next record to ring->record and gives its room back to the agent. Returns the record's size, 0 if none is
 * published, or -EPROTO. Reads nothing from the shared memory twice.
 */
static int take_record(struct agent_ring *ring, struct lane *lane)
{
	/* Acquire pairs with the producer's compare-and-swap: a record's bytes are inside the range it reserved. */
	uint64_t waiting = __atomic_load_n(&lane->shared->head, __ATOMIC_ACQUIRE) - lane->tail;
	unsigned char *place = lane->data + (lane->tail & (lane->bytes - 1));
	uint32_t size;

	if (waiting > lane->bytes || waiting % DUET_RING_ALIGN)
		return -EPROTO;
	if (waiting == 0)
		return 0;
	/* Acquire pairs with duet_ring_commit(): once the size is visible, so is the record. */
	size = __atomic_load_n((uint32_t *)place, __ATOMIC_ACQUIRE);
	if (size == 0)
		return 0;
	if (size < sizeof(struct duet_ring_record) || size % DUET_RING_ALIGN || size > DUET_RING_MAX_RECORD ||
	    size > waiting)
		return -EPROTO;
	copy_record(ring, place, size);
	memset(place, 0, size);
	lane->tail += size;
	/* Release pairs with the acquire in duet_ring_reserve(): the room reads as zero before it is reused. */
	__atomic_store_n(&lane->shared->tail, lane->tail, __ATOMIC_RELEASE);
	return (int)size;
}

int agent_ring_read(struct agent_ring *ring, enum duet_lane lane, agent_ring_handler handler, void *context, int budget,
		    uint64_t *bad)
{
	/* Reads at most one lane's length: records that the agent writes meanwhile are left for the next call. */
	const uint64_t end = ring->lanes[lane].tail + ring->lanes[lane].bytes;
	int count = 0;

	while (count < budget && ring->lanes[lane].tail < end) {
		int size = take_record(ring, &ring->lanes[lane]);
		const struct duet_ring_record *record = ring->record;
		uint32_t payload;

		if (size <= 0)
			return size < 0 ? size : count;
		count++;
		payload = (uint32_t)size - (uint32_t)sizeof(*record);
		if (agent_record_check(record->type, record + 1, payload))
			handler(context, record->type, record + 1, payload);
		else
			(*bad)++;
	}
	return count;
}

uint64_t agent_ring_counter(const struct agent_ring *ring, enum duet_agent_counter counter)
{
	return __atomic_load_n(&ring->page->counters[counter], __ATOMIC_RELAXED);
}

uint64_t agent_ring_handler_ns(const struct agent_ring *ring)
{
	return __atomic_load_n(&ring->page->handler_ns, __ATOMIC_RELAXED);
}
