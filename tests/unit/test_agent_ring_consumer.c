/* SPDX-License-Identifier: MIT */
/* The loader's end of the ring, with producers that keep the rules and one that breaks them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/records/agent_ring.h"

#define SAMPLE_BYTES 16384
#define METADATA_BYTES 8192

/* The producer's side, mapped as an agent maps it. */
struct producer {
	struct agent_ring *ring;
	struct duet_ring_page *page;
	unsigned char *base;
	struct duet_lane_view view;
};

static void producer_open(struct producer *producer, enum duet_lane lane)
{
	struct duet_lane_view *view = &producer->view;
	int fd;

	assert_int_equal(agent_ring_new(&producer->ring, SAMPLE_BYTES, METADATA_BYTES), 0);
	fd = agent_ring_fd(producer->ring);
	producer->page = mmap(NULL, DUET_RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(producer->page, MAP_FAILED);
	view->lane = &producer->page->lanes[lane];
	view->bytes = view->lane->bytes;
	producer->base = mmap(NULL, 2 * view->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(producer->base, MAP_FAILED);
	for (unsigned i = 0; i < 2; i++)
		assert_ptr_not_equal(mmap(producer->base + i * view->bytes, view->bytes, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, fd, (off_t)view->lane->offset),
				     MAP_FAILED);
	view->data = producer->base;
}

static void producer_close(struct producer *producer)
{
	munmap(producer->base, 2 * producer->view.bytes);
	munmap(producer->page, DUET_RING_PAGE);
	agent_ring_free(producer->ring);
}

/* A thread record whose name is `len` times the low byte of `id`. */
static uint32_t payload_of(uint16_t len)
{
	return (uint32_t)sizeof(struct duet_thread) + len;
}

static void fill(struct duet_ring_record *record, uint32_t id, uint16_t len)
{
	struct duet_thread *thread = (void *)(record + 1);

	*thread = (struct duet_thread){.time_ns = ~(uint64_t)id, .tid = id, .name_len = len};
	memset(thread + 1, (int)(id & 0xff), len);
	duet_ring_commit(record, DUET_AGENT_THREAD, payload_of(len));
}

static bool produce(struct duet_lane_view *view, uint32_t id, uint16_t len)
{
	struct duet_ring_record *record = duet_ring_reserve(view, payload_of(len));

	if (record)
		fill(record, id, len);
	return record;
}

struct seen {
	unsigned count;
	unsigned wrong;
	uint32_t last_tid;
	uint32_t next[8]; /* by producer: the sequence number expected */
};

static void on_record(void *context, uint16_t type, const void *payload, uint32_t size)
{
	const struct duet_thread *thread = payload;
	const unsigned char *name = (const unsigned char *)(thread + 1);
	struct seen *seen = context;

	seen->count++;
	seen->last_tid = thread->tid;
	seen->wrong += type != DUET_AGENT_THREAD || thread->time_ns != ~(uint64_t)thread->tid;
	seen->wrong += sizeof(*thread) + thread->name_len > size;
	for (uint16_t i = 0; i < thread->name_len; i++)
		seen->wrong += name[i] != (thread->tid & 0xff);
	if (thread->tid >> 24 < 8 && seen->next[thread->tid >> 24]++ != (thread->tid & 0xffffff))
		seen->wrong++;
}

static int read_all(struct producer *producer, enum duet_lane lane, struct seen *seen, uint64_t *bad)
{
	return agent_ring_read(producer->ring, lane, on_record, seen, 1000000, bad);
}

/* ---- the file ---- */

static void memfd_is_sealed_and_described(void **state)
{
	struct producer producer;
	struct stat st;
	int fd;

	producer_open(&producer, DUET_LANE_SAMPLE);
	fd = agent_ring_fd(producer.ring);
	assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, agent_ring_bytes(producer.ring));
	assert_int_equal(producer.page->magic, DUET_RING_MAGIC);
	assert_int_equal(producer.page->version, DUET_AGENT_VERSION);
	assert_int_equal(producer.page->total_bytes, st.st_size);
	assert_int_equal(producer.page->lanes[1].offset, producer.page->lanes[0].offset + SAMPLE_BYTES);
	agent_ring_close_fd(producer.ring);
	assert_int_equal(agent_ring_fd(producer.ring), -1);
	producer_close(&producer);
}

static void sizes_round_up_to_powers_of_two(void **state)
{
	struct agent_ring *ring = NULL;

	assert_int_equal(agent_ring_new(&ring, 5000, 1), 0);
	assert_int_equal(agent_ring_bytes(ring) % 4096, 0);
	assert_true(agent_ring_bytes(ring) >= 4096 + 8192 + 4096);
	agent_ring_free(ring);
	ring = NULL;
	assert_int_equal(agent_ring_new(&ring, SIZE_MAX, 4096), -EINVAL);
	assert_null(ring);
	agent_ring_free(NULL);
}

static void only_what_is_touched_takes_ram(void **state)
{
	struct agent_ring *ring = NULL;
	char *at;

	assert_int_equal(agent_ring_new(&ring, 1 << 20, 1 << 20), 0);
	at = mmap(NULL, agent_ring_bytes(ring), PROT_READ | PROT_WRITE, MAP_SHARED, agent_ring_fd(ring), 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(agent_ring_touched(ring), 4096);
	memset(at + (1 << 20), 1, 8192); /* as an agent does */
	assert_int_equal(agent_ring_touched(ring), 3 * 4096);
	munmap(at, agent_ring_bytes(ring));
	agent_ring_free(ring);
}

/* ---- producers that keep the rules ---- */

static void records_arrive_across_the_wrap(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_METADATA);
	for (uint32_t i = 0; i < 5000; i++) {
		assert_true(produce(&producer.view, i, (uint16_t)(i * 37 % 2000)));
		assert_int_equal(read_all(&producer, DUET_LANE_METADATA, &seen, &bad), 1);
	}
	assert_int_equal(seen.count, 5000);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(bad, 0);
	producer_close(&producer);
}

static void full_lane_drops_and_recovers(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;
	uint32_t kept = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	while (produce(&producer.view, kept, 40))
		kept++;
	assert_int_equal(kept, SAMPLE_BYTES / duet_ring_record_size(sizeof(struct duet_thread) + 40));
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), kept);
	assert_true(produce(&producer.view, kept, 40));
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 1);
	assert_int_equal(seen.wrong, 0);
	producer_close(&producer);
}

static void hole_holds_back_what_follows(void **state)
{
	struct producer producer;
	struct duet_ring_record *hole;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	assert_true(produce(&producer.view, 0, 8));
	hole = duet_ring_reserve(&producer.view, payload_of(8));
	assert_non_null(hole);
	assert_true(produce(&producer.view, 2, 8));
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 1);
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 0);
	fill(hole, 1, 8);
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 2);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(bad, 0);
	producer_close(&producer);
}

/* A producer that was interrupted between its two loads sees the consumer past the head that it has read. */
static void an_old_head_is_not_a_full_lane(void **state)
{
	struct producer producer;

	producer_open(&producer, DUET_LANE_SAMPLE);
	producer.view.lane->tail = producer.view.lane->head + 64;
	assert_true(produce(&producer.view, 1, 0));
	producer_close(&producer);
}

static void half_of_a_lane_is_noticed(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	while (producer.view.lane->head <= SAMPLE_BYTES / 2) {
		assert_false(duet_ring_is_half(&producer.view));
		assert_true(produce(&producer.view, 1, 40));
	}
	assert_true(duet_ring_is_half(&producer.view));
	assert_true(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad) > 0);
	assert_false(duet_ring_is_half(&producer.view));
	producer_close(&producer);
}

static void budget_is_kept(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	for (uint32_t i = 0; i < 10; i++)
		assert_true(produce(&producer.view, i, 0));
	assert_int_equal(agent_ring_read(producer.ring, DUET_LANE_SAMPLE, on_record, &seen, 0, &bad), 0);
	assert_int_equal(agent_ring_read(producer.ring, DUET_LANE_SAMPLE, on_record, &seen, 7, &bad), 7);
	assert_int_equal(agent_ring_read(producer.ring, DUET_LANE_SAMPLE, on_record, &seen, 7, &bad), 3);
	producer_close(&producer);
}

struct writer {
	struct producer *producer;
	unsigned count;
};

/* For each record that is taken, another one is written. */
static void write_another(void *context, uint16_t type, const void *payload, uint32_t size)
{
	struct writer *writer = context;

	assert_true(produce(&writer->producer->view, ++writer->count, 0));
}

static void endless_producer_does_not_keep_us(void **state)
{
	struct producer producer;
	struct writer writer = {.producer = &producer};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	assert_true(produce(&producer.view, 0, 0));
	assert_int_equal(agent_ring_read(producer.ring, DUET_LANE_SAMPLE, write_another, &writer, INT32_MAX, &bad),
			 (SAMPLE_BYTES + duet_ring_record_size(sizeof(struct duet_thread)) - 1) /
				 duet_ring_record_size(sizeof(struct duet_thread)));
	producer_close(&producer);
}

#define PRODUCERS 4
#define EACH 20000u

struct worker {
	pthread_t thread;
	struct duet_lane_view *view;
	uint32_t number;
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (uint32_t i = 0; i < EACH;) {
		if (produce(worker->view, worker->number << 24 | i, (uint16_t)(i * 131 % 700)))
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static void threads_keep_their_order(void **state)
{
	struct worker workers[PRODUCERS];
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		workers[i] = (struct worker){.view = &producer.view, .number = i};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	while (seen.count < PRODUCERS * EACH) {
		int count = read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad);

		assert_true(count >= 0);
		if (count == 0)
			sched_yield();
	}
	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(bad, 0);
	producer_close(&producer);
}

static void counters_are_read(void **state)
{
	struct producer producer;

	producer_open(&producer, DUET_LANE_SAMPLE);
	duet_ring_count(producer.page, DUET_AGENT_FAULT);
	duet_ring_count(producer.page, DUET_AGENT_FAULT);
	assert_int_equal(agent_ring_counter(producer.ring, DUET_AGENT_FAULT), 2);
	assert_int_equal(agent_ring_counter(producer.ring, DUET_AGENT_RING_FULL), 0);
	producer_close(&producer);
}

/* ---- a producer that breaks the rules ---- */

static void impossible_heads_are_refused(void **state)
{
	static const uint64_t heads[] = {SAMPLE_BYTES + 8, 4, 12, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
	struct seen seen = {0};
	uint64_t bad = 0;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct producer producer;

		producer_open(&producer, DUET_LANE_SAMPLE);
		producer.view.lane->head = heads[i];
		assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), -EPROTO);
		producer_close(&producer);
	}
	assert_int_equal(seen.count, 0);
}

static void head_that_moves_back_is_refused(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	assert_true(produce(&producer.view, 0, 8));
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 1);
	producer.view.lane->head = 0;
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), -EPROTO);
	producer_close(&producer);
}

static void impossible_sizes_are_refused(void **state)
{
	static const uint32_t sizes[] = {1,
					 4,
					 7,
					 9,
					 12,
					 72,
					 SAMPLE_BYTES,
					 DUET_RING_MAX_RECORD,
					 DUET_RING_MAX_RECORD + 8,
					 UINT32_MAX,
					 UINT32_MAX - 7,
					 1u << 31};
	struct seen seen = {0};
	uint64_t bad = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct producer producer;

		producer_open(&producer, DUET_LANE_SAMPLE);
		producer.view.lane->head = 64;
		*(uint32_t *)producer.view.data = sizes[i];
		assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), -EPROTO);
		producer_close(&producer);
	}
	assert_int_equal(seen.count, 0);
}

static void malformed_insides_are_counted(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	duet_ring_commit(duet_ring_reserve(&producer.view, 100), 0x7777, 100);
	duet_ring_commit(duet_ring_reserve(&producer.view, 3), DUET_AGENT_JAVA_SAMPLE, 3);
	assert_true(produce(&producer.view, 0, 8));
	assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 3);
	assert_int_equal(bad, 2);
	assert_int_equal(seen.count, 1);
	producer_close(&producer);
}

/* The producer reads tail, offset and length in the shared page; the loader has its own copies. */
static void shared_positions_are_not_believed(void **state)
{
	struct producer producer;
	struct seen seen = {0};
	uint64_t bad = 0;

	producer_open(&producer, DUET_LANE_SAMPLE);
	for (uint32_t i = 0; i < 1000; i++) {
		producer.view.lane->offset = UINT64_MAX;
		producer.view.lane->bytes = i;
		assert_true(produce(&producer.view, i, 100));
		producer.view.lane->tail = UINT64_MAX - i;
		assert_int_equal(read_all(&producer, DUET_LANE_SAMPLE, &seen, &bad), 1);
		assert_int_equal(producer.view.lane->tail, producer.view.lane->head);
	}
	assert_int_equal(seen.wrong, 0);
	producer_close(&producer);
}

struct vandal {
	struct producer *producer;
	bool stop;
};

/* Writes plausible and absurd values over a live lane. */
static void *vandalize(void *argument)
{
	struct vandal *vandal = argument;
	struct duet_lane_view *view = &vandal->producer->view;
	unsigned seed = 7;

	while (!__atomic_load_n(&vandal->stop, __ATOMIC_RELAXED)) {
		uint32_t *word = (uint32_t *)(view->data + (unsigned)rand_r(&seed) % view->bytes / 8 * 8);

		__atomic_store_n(word, (unsigned)rand_r(&seed) % 256 * 8, __ATOMIC_RELAXED);
		__atomic_store_n(word + 1, (unsigned)rand_r(&seed) % 10, __ATOMIC_RELAXED);
		if (rand_r(&seed) % 16 == 0)
			__atomic_fetch_add(&view->lane->head, (unsigned)rand_r(&seed) % 64 * 8, __ATOMIC_RELAXED);
		if (rand_r(&seed) % 16 == 0)
			__atomic_store_n(&view->lane->tail, (uint64_t)rand_r(&seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void ignore_record(void *context, uint16_t type, const void *payload, uint32_t size)
{
	const unsigned char *bytes = payload;

	for (uint32_t i = 0; i < size; i++)
		*(unsigned *)context += bytes[i] + type;
}

static void vandal_cannot_lead_out_of_bounds(void **state)
{
	unsigned sum = 0;
	uint64_t bad = 0;

	for (unsigned round = 0; round < 200; round++) {
		struct producer producer;
		struct vandal vandal = {.producer = &producer};
		pthread_t thread;
		int result = 0;

		producer_open(&producer, DUET_LANE_SAMPLE);
		assert_int_equal(pthread_create(&thread, NULL, vandalize, &vandal), 0);
		for (unsigned i = 0; i < 1000 && result >= 0; i++)
			result = agent_ring_read(producer.ring, DUET_LANE_SAMPLE, ignore_record, &sum, 100, &bad);
		__atomic_store_n(&vandal.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		assert_true(result >= 0 || result == -EPROTO);
		producer_close(&producer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memfd_is_sealed_and_described),     cmocka_unit_test(sizes_round_up_to_powers_of_two),
		cmocka_unit_test(only_what_is_touched_takes_ram),
		cmocka_unit_test(records_arrive_across_the_wrap),    cmocka_unit_test(full_lane_drops_and_recovers),
		cmocka_unit_test(hole_holds_back_what_follows),	     cmocka_unit_test(budget_is_kept),
		cmocka_unit_test(an_old_head_is_not_a_full_lane),    cmocka_unit_test(half_of_a_lane_is_noticed),
		cmocka_unit_test(endless_producer_does_not_keep_us),
		cmocka_unit_test(threads_keep_their_order),	     cmocka_unit_test(counters_are_read),
		cmocka_unit_test(impossible_heads_are_refused),	     cmocka_unit_test(head_that_moves_back_is_refused),
		cmocka_unit_test(impossible_sizes_are_refused),	     cmocka_unit_test(malformed_insides_are_counted),
		cmocka_unit_test(shared_positions_are_not_believed), cmocka_unit_test(vandal_cannot_lead_out_of_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
