/* SPDX-License-Identifier: MIT */
#include "hotspot/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>


/* The largest sample must fit while another one is being read. */
#define LANE_MIN_BYTES (64u << 10)
#define LANE_MAX_BYTES (1ull << 30)
#define TOUCHED_BYTES (16u << 10) /* some samples of threads that go on at the same time */
#define WAIT_STEP_NS 1000000
#define WAIT_STEPS 500

bool ring_file_is_safe(int fd, uint64_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	off_t size = lseek(fd, 0, SEEK_END);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && size > 0 && (uint64_t)size == bytes;
}

static bool lane_is_sound(uint64_t offset, uint64_t bytes, uint64_t total)
{
	return bytes >= LANE_MIN_BYTES && bytes <= LANE_MAX_BYTES && !(bytes & (bytes - 1)) &&
	       offset >= DUET_RING_PAGE && !(offset % DUET_RING_PAGE) && offset <= total && bytes <= total - offset;
}

static int lane_map(struct duet_lane_view *view, struct duet_ring_lane *lane, int fd, uint64_t total)
{
	/* Copies the fields, because the page is shared: the values that are used must be those that were checked. */
	uint64_t offset = __atomic_load_n(&lane->offset, __ATOMIC_RELAXED);
	uint64_t bytes = __atomic_load_n(&lane->bytes, __ATOMIC_RELAXED);
	unsigned char *data;

	if (!lane_is_sound(offset, bytes, total))
		return -EPROTO;
	data = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED)
		return -errno;
	if (mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED ||
	    mmap(data + bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) ==
		    MAP_FAILED) {
		int error = -errno;

		munmap(data, 2 * bytes);
		return error;
	}
	/* A child of fork() must not write into the ring. */
	madvise(data, 2 * bytes, MADV_DONTFORK);
	*view = (struct duet_lane_view){.lane = lane, .data = data, .bytes = bytes};
	return 0;
}

int ring_map(struct ring *ring, int fd, uint64_t bytes, const char **ret_why)
{
	struct ring new_ring = {0};
	void *page;
	int error = -EPROTO;

	*ret_why = "the ring is not a sealed file of the size announced";
	if (!ring_file_is_safe(fd, bytes))
		return error;
	*ret_why = "the ring could not be mapped";
	page = mmap(NULL, DUET_RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	madvise(page, DUET_RING_PAGE, MADV_DONTFORK);
	new_ring.page = page;
	*ret_why = "the ring is of another version";
	if (new_ring.page->magic != DUET_RING_MAGIC || new_ring.page->version != DUET_AGENT_VERSION)
		goto out;
	*ret_why = "the ring's lanes are malformed or could not be mapped";
	for (int i = 0; i < DUET_LANES; i++) {
		error = lane_map(&new_ring.lanes[i], &new_ring.page->lanes[i], fd, bytes);
		if (error)
			goto out;
	}
	*ring = new_ring;
	error = 0;
out:
	if (error)
		ring_unmap(&new_ring);
	return error;
}

void ring_unmap(struct ring *ring)
{
	for (int i = 0; i < DUET_LANES; i++)
		if (ring->lanes[i].data)
			munmap(ring->lanes[i].data, 2 * ring->lanes[i].bytes);
	if (ring->page)
		munmap(ring->page, DUET_RING_PAGE);
	memset(ring, 0, sizeof(*ring));
}

static struct duet_ring_record *reserve(struct ring *ring, uint32_t payload, enum ring_when_full when_full)
{
	struct duet_lane_view *view = &ring->lanes[DUET_LANE_METADATA];
	struct duet_ring_record *record = duet_ring_reserve(view, payload);
	struct timespec step = {.tv_nsec = WAIT_STEP_NS};

	if (when_full == RING_DROP)
		return record;
	for (int i = 0; !record && !ring->stalled && i < WAIT_STEPS; i++) {
		nanosleep(&step, NULL);
		record = duet_ring_reserve(view, payload);
	}
	ring->stalled = !record;
	return record;
}

bool ring_write(struct ring *ring, enum duet_agent_record_type type, const struct ring_part *parts, size_t count,
		enum ring_when_full when_full)
{
	struct duet_ring_record *record = NULL;
	unsigned char *cursor;
	size_t payload = 0;

	for (size_t i = 0; i < count; i++)
		payload += parts[i].bytes;
	if (payload < ring->lanes[DUET_LANE_METADATA].bytes && payload < DUET_RING_MAX_RECORD)
		record = reserve(ring, (uint32_t)payload, when_full);
	if (!record) {
		duet_ring_count(ring->page, DUET_AGENT_METADATA_FULL);
		return false;
	}
	cursor = (unsigned char *)(record + 1);
	for (size_t i = 0; i < count; i++) {
		if (parts[i].bytes) /* else there may be no data */
			memcpy(cursor, parts[i].data, parts[i].bytes);
		cursor += parts[i].bytes;
	}
	duet_ring_commit(record, type, (uint32_t)payload);
	return true;
}

size_t ring_metadata_most(const struct ring *ring)
{
	size_t quarter = ring->lanes[DUET_LANE_METADATA].bytes / 4;

	return quarter < DUET_RING_MAX_RECORD / 2 ? quarter : DUET_RING_MAX_RECORD / 2;
}

bool ring_has_room(const struct ring *ring)
{
	const struct duet_lane_view *view = &ring->lanes[DUET_LANE_METADATA];
	uint64_t tail = __atomic_load_n(&view->lane->tail, __ATOMIC_ACQUIRE);
	uint64_t used = __atomic_load_n(&view->lane->head, __ATOMIC_RELAXED) - tail;

	return used + 2 * ring_metadata_most(ring) <= view->bytes;
}

void ring_touch(struct ring *ring)
{
	const struct duet_lane_view *view = &ring->lanes[DUET_LANE_SAMPLE];
	uint64_t head = __atomic_load_n(&view->lane->head, __ATOMIC_RELAXED);

	for (uint64_t at = head; at - head < TOUCHED_BYTES; at += DUET_RING_PAGE)
		__atomic_fetch_or(&view->data[at & (view->bytes - 1)], 0, __ATOMIC_RELAXED);
}
