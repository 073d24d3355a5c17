/* SPDX-License-Identifier: MIT */
/* The shared memory as an agent may leave it: heads, tails and both lanes, changed between two readings. */
#include <errno.h>

#include "collect/records/agent_ring.h"
#include "jvm_sink.h"

#define LANE_BYTES 4096u

static struct agent_ring *ring;
static unsigned char *shared;

/* A ring is read until it is refused; then a new one is made. */
static void ring_renew(void)
{
	if (shared)
		munmap(shared, agent_ring_bytes(ring));
	agent_ring_free(ring);
	FUZZ_CHECK(!agent_ring_new(&ring, LANE_BYTES, LANE_BYTES));
	shared = mmap(NULL, agent_ring_bytes(ring), PROT_READ | PROT_WRITE, MAP_SHARED, agent_ring_fd(ring), 0);
	FUZZ_CHECK(shared != MAP_FAILED);
}

static void scribble(struct input *input)
{
	struct duet_ring_page *page = (struct duet_ring_page *)shared;

	for (int i = 0; i < DUET_LANES; i++) {
		size_t at = DUET_RING_PAGE + (size_t)i * LANE_BYTES + input_number(input, 2) % LANE_BYTES / 8 * 8;
		size_t len = input_number(input, 2) % LANE_BYTES;

		if (at + len > agent_ring_bytes(ring))
			len = agent_ring_bytes(ring) - at;
		input_read(input, shared + at, len);
		page->lanes[i].head += (uint64_t)(int64_t)(int16_t)input_number(input, 2);
		page->lanes[i].tail = page->lanes[i].offset = page->lanes[i].bytes = input_number(input, 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct symbols *symbols;
	struct input input = {data, size};
	struct jvm_sink sink;
	uint64_t bad = 0;
	int err = 0;

	if (!symbols)
		symbols = symbols_new();
	ring_renew();
	jvm_sink_open(&sink, symbols);
	while (input.left && err >= 0) {
		scribble(&input);
		err = agent_ring_read(ring, DUET_LANE_METADATA, jvm_sink_take, &sink, 100, &bad);
		if (err >= 0)
			err = agent_ring_read(ring, DUET_LANE_SAMPLE, jvm_sink_take, &sink, 100, &bad);
		FUZZ_CHECK(err >= 0 || err == -EPROTO);
	}
	jvm_sink_close(&sink);
	return 0;
}
