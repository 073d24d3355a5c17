/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/inlining.h"
#include "runtime/jvm.h"

#define MAX_PCS 4096
#define MAX_FRAMES 16384

/* The agent's record of one compilation. */
struct sent {
	uint32_t pc_count, frame_count;
	struct duet_code_pc pcs[MAX_PCS];
	struct duet_java_frame frames[MAX_FRAMES];
};

static void send_pc(struct sent *sent, uint32_t offset, const struct duet_java_frame *frames, uint32_t depth)
{
	assert_true(sent->pc_count < MAX_PCS && sent->frame_count + depth <= MAX_FRAMES);
	sent->pcs[sent->pc_count++] =
		(struct duet_code_pc){.offset = offset, .frame = sent->frame_count, .depth = depth};
	memcpy(sent->frames + sent->frame_count, frames, depth * sizeof(*frames));
	sent->frame_count += depth;
}

static struct inlining *keep(const struct sent *sent)
{
	size_t pc_bytes = sent->pc_count * sizeof(*sent->pcs), frame_bytes = sent->frame_count * sizeof(*sent->frames);
	struct duet_code_load *record = calloc(1, sizeof(*record) + pc_bytes + frame_bytes);
	struct inlining *inlining;

	record->pc_count = sent->pc_count;
	record->frame_count = sent->frame_count;
	memcpy(record + 1, sent->pcs, pc_bytes);
	memcpy((char *)(record + 1) + pc_bytes, sent->frames, frame_bytes);
	assert_int_equal(inlining_new(record, &inlining), 0);
	free(record);
	return inlining;
}

static uint64_t hash_of(const struct duet_java_frame *frames, uint32_t depth)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < depth; i++)
		hash = inlining_hash(hash, &frames[i]);
	return hash;
}

static void expect_frames(const struct inlining *inlining, uint64_t offset, const struct duet_java_frame *frames,
			  uint32_t depth)
{
	struct duet_java_frame found[JVM_INLINING_DEPTH];
	uint32_t flags;

	assert_int_equal(inlining_frames(inlining, offset, found, &flags), depth);
	for (uint32_t i = 0; i < depth; i++) {
		assert_int_equal(found[i].method, frames[i].method);
		assert_int_equal(found[i].bci, frames[i].bci);
	}
}

static void expect_all(const struct inlining *inlining, const struct sent *sent)
{
	for (uint32_t i = 0; i < sent->pc_count; i++) {
		const struct duet_java_frame *frames = &sent->frames[sent->pcs[i].frame];

		expect_frames(inlining, sent->pcs[i].offset, frames, sent->pcs[i].depth);
		expect_frames(inlining, sent->pcs[i].offset - 1, frames, sent->pcs[i].depth);
		if (sent->pcs[i].depth <= INLINING_MATCH_DEPTH)
			assert_true(inlining_has(inlining, hash_of(frames, sent->pcs[i].depth)));
	}
}

/* Stacks of few methods and many bcis. Each begins where the previous one did, like an inliner's stacks. */
static void send_random(struct sent *sent, uint32_t pcs, uint32_t step, int32_t most_bci)
{
	struct duet_java_frame frames[16] = {0};
	uint32_t offset = 1;

	for (uint32_t i = 0; i < pcs; i++) {
		uint32_t depth = 1 + (uint32_t)rand() % 12, kept = (uint32_t)rand() % depth;

		memmove(frames + depth - kept, frames + 16 - kept, kept * sizeof(*frames));
		for (uint32_t d = 0; d < depth - kept; d++)
			frames[d] = (struct duet_java_frame){.method = 0x7f0000000000 + (uint64_t)(rand() % 40),
							     .bci = rand() % most_bci - 3};
		send_pc(sent, offset, frames, depth);
		memmove(frames + 16 - depth, frames, depth * sizeof(*frames));
		offset += 2 + (uint32_t)rand() % step;
	}
}

static void test_tells_what_it_was_told(void **state)
{
	struct sent *sent = calloc(1, sizeof(*sent));

	srand(7);
	for (int round = 0; round < 100; round++) {
		struct inlining *inlining;

		sent->pc_count = sent->frame_count = 0;
		send_random(sent, 1 + (uint32_t)rand() % 300, round % 2 ? 20 : 3000, round % 3 ? 200 : 60000);
		inlining = keep(sent);
		expect_all(inlining, sent);
		/* code before the first entry belongs to it */
		expect_frames(inlining, 0, &sent->frames[sent->pcs[0].frame], sent->pcs[0].depth);
		expect_frames(inlining, sent->pcs[sent->pc_count - 1].offset + 1, NULL, 0);
		assert_false(inlining_has(inlining, hash_of(sent->frames, 1) + 1));
		free(inlining);
	}
	free(sent);
}

/* Pcs with the same stack share its frames in the record too. */
static void test_shared_frames(void **state)
{
	const struct duet_java_frame frames[] = {{.method = 2, .bci = 1}, {.method = 1, .bci = 5}};
	struct sent *sent = calloc(1, sizeof(*sent));
	struct inlining *inlining;

	send_pc(sent, 4, frames, 2);
	for (uint32_t i = 1; i < 100; i++) {
		sent->pcs[i] = sent->pcs[0];
		sent->pcs[i].offset += 4 * i;
	}
	sent->pc_count = 100;
	inlining = keep(sent);
	expect_all(inlining, sent);
	assert_int_equal(inlining->node_count, 2);
	assert_int_equal(inlining->stack_count, 1);
	free(inlining);
	free(sent);
}

static void test_callers_are_no_stacks(void **state)
{
	const struct duet_java_frame frames[] = {{.method = 2, .bci = 1}, {.method = 1, .bci = 5}};
	struct sent *sent = calloc(1, sizeof(*sent));
	struct inlining *inlining;

	send_pc(sent, 4, frames, 2);
	inlining = keep(sent);
	assert_true(inlining_has(inlining, hash_of(frames, 2)));
	assert_false(inlining_has(inlining, hash_of(frames, 1)));
	assert_false(inlining_has(inlining, hash_of(frames + 1, 1)));
	free(inlining);
	free(sent);
}

static void test_no_debug_information(void **state)
{
	struct sent *sent = calloc(1, sizeof(*sent));

	assert_null(keep(sent));
	assert_int_equal(inlining_bytes(NULL), 0);
	free(sent);
}

/* ---- records that our agent does not send ---- */

static void test_numbers_of_any_size(void **state)
{
	const struct duet_java_frame frames[] = {
		{.method = UINT64_MAX, .bci = INT32_MIN}, {.method = 0, .bci = INT32_MAX}, {.method = 1, .bci = -1}};
	struct sent *sent = calloc(1, sizeof(*sent));
	struct inlining *inlining;

	send_pc(sent, 1, frames, 3);
	send_pc(sent, UINT32_MAX, frames + 1, 2);
	inlining = keep(sent);
	expect_all(inlining, sent);
	expect_frames(inlining, UINT64_MAX, NULL, 0);
	free(inlining);
	free(sent);
}

static void test_deep_stack_is_left_out(void **state)
{
	struct duet_java_frame frames[JVM_INLINING_DEPTH + 1] = {0};
	struct sent *sent = calloc(1, sizeof(*sent));
	struct inlining *inlining;

	send_pc(sent, 1, frames, JVM_INLINING_DEPTH);
	send_pc(sent, 2, frames, JVM_INLINING_DEPTH + 1);
	inlining = keep(sent);
	expect_frames(inlining, 1, frames, JVM_INLINING_DEPTH);
	expect_frames(inlining, 2, NULL, 0);
	free(inlining);
	free(sent);
}

/* Thousands of pcs that share the same hundreds of frames would take as long as millions of frames. */
static void test_overlapping_stacks_are_bounded(void **state)
{
	struct duet_java_frame found[JVM_INLINING_DEPTH];
	struct sent *sent = calloc(1, sizeof(*sent));
	struct inlining *inlining;
	uint32_t flags;

	sent->frame_count = 300;
	sent->pc_count = MAX_PCS;
	for (uint32_t i = 0; i < MAX_PCS; i++)
		sent->pcs[i] = (struct duet_code_pc){.offset = i, .frame = i % 50, .depth = 100 + i % 100};
	for (uint32_t i = 0; i < 300; i++)
		sent->frames[i] = (struct duet_java_frame){.method = i};
	inlining = keep(sent);
	assert_true(inlining->node_count <= 1200);
	assert_int_equal(inlining_frames(inlining, 0, found, &flags), 100);
	/* what is left out is not known: it never gets the frames of the code after it */
	assert_int_equal(inlining_frames(inlining, MAX_PCS - 1, found, &flags), 0);
	assert_int_equal(flags, DUET_PC_ESTIMATED | DUET_PC_MISSING);
	free(inlining);
	free(sent);
}

/* Offsets that do not ascend: any answer will do. */
static void test_offsets_without_order(void **state)
{
	const struct duet_java_frame frame = {.method = 1};
	struct duet_java_frame found[JVM_INLINING_DEPTH];
	struct sent *sent = calloc(1, sizeof(*sent));
	struct inlining *inlining;
	uint32_t flags;

	for (uint32_t i = 0; i < 100; i++)
		send_pc(sent, i * 37 % 100, &frame, 1);
	inlining = keep(sent);
	for (uint64_t offset = 0; offset < 120; offset++)
		assert_true(inlining_frames(inlining, offset, found, &flags) <= 1);
	free(inlining);
	free(sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tells_what_it_was_told),
		cmocka_unit_test(test_shared_frames),
		cmocka_unit_test(test_callers_are_no_stacks),
		cmocka_unit_test(test_no_debug_information),
		cmocka_unit_test(test_numbers_of_any_size),
		cmocka_unit_test(test_deep_stack_is_left_out),
		cmocka_unit_test(test_overlapping_stacks_are_bounded),
		cmocka_unit_test(test_offsets_without_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
