/* SPDX-License-Identifier: MIT */
/* The agent's end of the ring: what it maps, what it refuses, and many producers against one consumer. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "hotspot/ring.c"

#define LANE_BYTES (64u << 10)
#define TOTAL_BYTES (DUET_RING_PAGE + 2 * LANE_BYTES)
#define PRODUCERS 4
#define RECORDS 20000

static int make_file(unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct duet_ring_page page = {
		.magic = DUET_RING_MAGIC, .version = DUET_AGENT_VERSION, .total_bytes = TOTAL_BYTES};

	for (unsigned int i = 0; i < DUET_LANES; i++) {
		page.lanes[i].offset = DUET_RING_PAGE + i * LANE_BYTES;
		page.lanes[i].bytes = LANE_BYTES;
	}
	assert_int_equal(ftruncate(fd, TOTAL_BYTES), 0);
	assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_map(void **state)
{
	int fd = make_file(F_SEAL_SHRINK | F_SEAL_GROW);
	struct ring ring;
	const char *why;

	assert_int_equal(ring_map(&ring, fd, TOTAL_BYTES, &why), 0);
	close(fd);
	ring.lanes[DUET_LANE_METADATA].data[0] = 7;
	assert_int_equal(ring.lanes[DUET_LANE_METADATA].data[LANE_BYTES], 7);
	assert_int_equal(ring.lanes[DUET_LANE_SAMPLE].data[0], 0);
	ring_unmap(&ring);
	assert_null(ring.page);
}

static void refuse(int fd, uint64_t bytes)
{
	struct ring ring;
	const char *why = NULL;

	assert_true(ring_map(&ring, fd, bytes, &why) < 0);
	assert_non_null(why);
	close(fd);
}

static void test_refuse_files(void **state)
{
	refuse(make_file(0), TOTAL_BYTES);
	refuse(make_file(F_SEAL_SHRINK), TOTAL_BYTES - 4096);
	refuse(make_file(F_SEAL_SHRINK), TOTAL_BYTES + 4096);
	refuse(open("/dev/zero", O_RDWR | O_CLOEXEC), TOTAL_BYTES);
}

static void test_refuse_pages(void **state)
{
	static const struct {
		size_t offset;
		uint64_t value;
	} edits[] = {
		{offsetof(struct duet_ring_page, magic), 0},
		{offsetof(struct duet_ring_page, lanes[0].offset), 0},
		{offsetof(struct duet_ring_page, lanes[0].offset), DUET_RING_PAGE + 8},
		{offsetof(struct duet_ring_page, lanes[1].offset), TOTAL_BYTES},
		{offsetof(struct duet_ring_page, lanes[1].offset), UINT64_MAX - 4095},
		{offsetof(struct duet_ring_page, lanes[0].bytes), 0},
		{offsetof(struct duet_ring_page, lanes[0].bytes), LANE_BYTES + 4096},
		{offsetof(struct duet_ring_page, lanes[0].bytes), LANE_BYTES / 2},
		{offsetof(struct duet_ring_page, lanes[1].bytes), LANE_BYTES * 2},
		{offsetof(struct duet_ring_page, lanes[1].bytes), 1ull << 63},
	};

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		int fd = make_file(F_SEAL_SHRINK);

		assert_int_equal(pwrite(fd, &edits[i].value, 8, (off_t)edits[i].offset), 8);
		refuse(fd, TOTAL_BYTES);
	}
}

static void test_drop_when_full(void **state)
{
	int fd = make_file(F_SEAL_SHRINK);
	char payload[1000] = "";
	struct ring_part part = {payload, sizeof(payload)};
	struct ring ring;
	const char *why;

	assert_int_equal(ring_map(&ring, fd, TOTAL_BYTES, &why), 0);
	close(fd);
	for (int i = 0; i < 100; i++)
		ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_DROP);
	assert_int_equal(ring.page->counters[DUET_AGENT_METADATA_FULL], 100 - LANE_BYTES / duet_ring_record_size(1000));
	ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_WAIT);
	assert_true(ring.stalled);
	/* Larger than the lane, and larger than any record: never written, never fatal. */
	part.bytes = LANE_BYTES;
	ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_DROP);
	part.bytes = DUET_RING_MAX_RECORD;
	ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_DROP);
	ring_unmap(&ring);
}

/* The pages of the next samples are there, also those at the beginning of the lane, and their bytes are unchanged. */
static void test_touch(void **state)
{
	int fd = make_file(F_SEAL_SHRINK);
	struct duet_lane_view *view;
	struct stat before, after;
	struct ring ring;
	const char *why;

	assert_int_equal(ring_map(&ring, fd, TOTAL_BYTES, &why), 0);
	view = &ring.lanes[DUET_LANE_SAMPLE];
	view->lane->head = view->lane->tail = 10 * LANE_BYTES - DUET_RING_PAGE - 8;
	view->data[LANE_BYTES - DUET_RING_PAGE - 8] = 7;
	assert_int_equal(fstat(fd, &before), 0);
	ring_touch(&ring);
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal((after.st_blocks - before.st_blocks) * 512, TOUCHED_BYTES - DUET_RING_PAGE);
	assert_int_equal(view->data[LANE_BYTES - DUET_RING_PAGE - 8], 7);
	for (size_t at = 0; at < LANE_BYTES - DUET_RING_PAGE - 8; at++)
		assert_int_equal(view->data[at], 0);
	close(fd);
	ring_unmap(&ring);
}

static void read_all(struct duet_lane_view *view)
{
	memset(view->data, 0, view->bytes);
	__atomic_store_n(&view->lane->tail, view->lane->head, __ATOMIC_RELEASE);
}

/* After a loader that was late once has made room, the agent waits for it again. */
static void test_wait_again_after_a_stall(void **state)
{
	int fd = make_file(F_SEAL_SHRINK);
	char payload[1000] = "";
	struct ring_part part = {payload, sizeof(payload)};
	struct ring ring;
	const char *why;

	assert_int_equal(ring_map(&ring, fd, TOTAL_BYTES, &why), 0);
	close(fd);
	while (ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_DROP))
		;
	assert_false(ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_WAIT));
	assert_true(ring.stalled);
	read_all(&ring.lanes[DUET_LANE_METADATA]);
	assert_true(ring_write(&ring, DUET_AGENT_STUB, &part, 1, RING_WAIT));
	assert_false(ring.stalled);
	ring_unmap(&ring);
}

/* ---- producers against a consumer ---- */

struct numbered {
	uint32_t producer;
	uint32_t number;
};

struct producer {
	pthread_t thread;
	struct ring *ring;
	uint32_t id;
};

static void *produce(void *argument)
{
	struct producer *producer = argument;
	unsigned char filler[256];

	memset(filler, (int)producer->id, sizeof(filler));
	for (uint32_t i = 0; i < RECORDS;) {
		struct duet_lane_view *lane = &producer->ring->lanes[DUET_LANE_SAMPLE];
		uint32_t payload = (uint32_t)sizeof(struct numbered) + i % sizeof(filler);
		struct duet_ring_record *record = duet_ring_reserve(lane, payload);
		struct numbered numbered = {producer->id, i};

		if (!record)
			continue;
		assert_int_equal(record->size, 0);
		memcpy(record + 1, &numbered, sizeof(numbered));
		memcpy((char *)(record + 1) + sizeof(numbered), filler, i % sizeof(filler));
		duet_ring_commit(record, DUET_AGENT_JAVA_SAMPLE, payload);
		i++;
	}
	return NULL;
}

static void consume(struct duet_lane_view *lane, uint32_t *next, uint64_t *tail)
{
	unsigned char *at = lane->data + (*tail & (lane->bytes - 1));
	uint32_t size = __atomic_load_n(&((struct duet_ring_record *)at)->size, __ATOMIC_ACQUIRE);
	struct numbered numbered;

	if (!size)
		return;
	memcpy(&numbered, at + sizeof(struct duet_ring_record), sizeof(numbered));
	assert_true(numbered.producer < PRODUCERS);
	assert_int_equal(numbered.number, next[numbered.producer]++);
	assert_int_equal(size, duet_ring_record_size((uint32_t)sizeof(numbered) + numbered.number % 256));
	for (uint32_t i = 0; i < numbered.number % 256; i++)
		assert_int_equal(at[sizeof(struct duet_ring_record) + sizeof(numbered) + i], numbered.producer);
	memset(at, 0, size);
	*tail += size;
	__atomic_store_n(&lane->lane->tail, *tail, __ATOMIC_RELEASE);
}

static void test_many_producers(void **state)
{
	struct producer producers[PRODUCERS];
	uint32_t next[PRODUCERS] = {0}, taken = 0;
	int fd = make_file(F_SEAL_SHRINK);
	uint64_t tail = 0;
	struct ring ring;
	const char *why;

	assert_int_equal(ring_map(&ring, fd, TOTAL_BYTES, &why), 0);
	close(fd);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){.ring = &ring, .id = i};
		pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
	}
	while (taken < PRODUCERS * RECORDS) {
		consume(&ring.lanes[DUET_LANE_SAMPLE], next, &tail);
		taken = 0;
		for (int i = 0; i < PRODUCERS; i++)
			taken += next[i];
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	ring_unmap(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_refuse_files),
		cmocka_unit_test(test_refuse_pages),
		cmocka_unit_test(test_drop_when_full),
		cmocka_unit_test(test_touch),
		cmocka_unit_test(test_wait_again_after_a_stall),
		cmocka_unit_test(test_many_producers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
