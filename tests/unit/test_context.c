/* SPDX-License-Identifier: MIT */
/* Finding a thread's context in memory that its program may have filled with anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define BASE 0x10000000ull /* above all distances */
#define WORDS 512

static uint64_t memory[WORDS]; /* of the program, at BASE */

static int context_read(void *to, uint32_t bytes, uint64_t from)
{
	if (from < BASE || from - BASE > sizeof(memory) - bytes)
		return -1;
	memcpy(to, (const char *)memory + (from - BASE), bytes);
	return 0;
}

#include "walk/context.h"

static const uint64_t thread_pointer = BASE + 200 * 8, vector = BASE + 300 * 8, block = BASE + 100 * 8,
		      slot = BASE + 8, record = BASE + 400 * 8;

static uint64_t *word(uint64_t address)
{
	return &memory[(address - BASE) / 8];
}

static int setup(void **state)
{
	struct duet_context_record *at = (struct duet_context_record *)word(record);

	memset(memory, 0, sizeof(memory));
	memset(at->context.trace_id, 0xab, sizeof(at->context.trace_id));
	memset(at->context.span_id, 0xcd, sizeof(at->context.span_id));
	at->valid = DUET_CONTEXT_VALID;
	return 0;
}

/* Returns true if the source leads to the record. */
static bool leads(const struct duet_context_source *source)
{
	struct duet_context_sources sources = {.of[0] = *source};
	struct duet_context_record found = {.attribute_bytes = 0};
	uint64_t at = context_find(&sources, thread_pointer, &found);

	assert_true(!at || (at == record && found.context.span_id[0] == 0xcd && found.context.trace_id[15] == 0xab));
	return at;
}

static void at_a_distance(void **state)
{
	struct duet_context_source source = {.place = DUET_CONTEXT_FIXED, .at = (uint64_t)-16};

	assert_false(leads(&source));
	*word(thread_pointer - 16) = record;
	assert_true(leads(&source));
	source = (struct duet_context_source){.place = DUET_CONTEXT_DISTANCE, .at = slot};
	assert_false(leads(&source));
	*word(slot) = (uint64_t)-16;
	assert_true(leads(&source));
	source = (struct duet_context_source){.place = DUET_CONTEXT_DESCRIPTOR, .at = slot - 8};
	assert_true(leads(&source));
	source.place = DUET_CONTEXT_NOWHERE;
	assert_false(leads(&source));
}

/* Makes the variable that of module 5, at offset 24 of its block. */
static void put_vector(const struct duet_context_source *source, uint64_t index_at)
{
	uint64_t row_bytes = source->is_musl ? 8 : 16;

	*word(context_vector_at(source, thread_pointer)) = vector;
	*word(source->is_musl ? vector : vector - 16) = 7;
	*word(vector + 5 * row_bytes) = block;
	*word(block + 24) = record;
	*word(index_at) = 5;
	*word(index_at + 8) = 24;
}

static void in_a_module(void **state)
{
	for (uint32_t is_musl = 0; is_musl <= 1; is_musl++) {
		struct duet_context_source source = {.place = DUET_CONTEXT_INDEX, .at = slot, .is_musl = is_musl};

		setup(state);
		assert_false(leads(&source));
		put_vector(&source, slot);
		assert_true(leads(&source));
		setup(state);
		put_vector(&source, slot + 64);
		*word(slot + 8) = slot + 64;
		source.place = DUET_CONTEXT_DESCRIPTOR;
		assert_true(leads(&source));
	}
}

static void nothing_is_trusted(void **state)
{
	struct duet_context_source source = {.place = DUET_CONTEXT_INDEX, .at = slot};
	struct duet_context_record *at = (struct duet_context_record *)word(record);

	put_vector(&source, slot);
	*word(slot) = 8; /* more than the vector has */
	assert_false(leads(&source));
	*word(slot) = UINT64_MAX / 16;
	assert_false(leads(&source));
	*word(slot) = 5;
	*word(vector + 5 * 16) = UINT64_MAX; /* not allocated */
	assert_false(leads(&source));
	*word(vector + 5 * 16) = block;
	at->valid = 2;
	assert_false(leads(&source));
	at->valid = DUET_CONTEXT_VALID;
	assert_true(leads(&source));
	*word(block + 24) = BASE + sizeof(memory) - 8; /* the record is not all there */
	assert_false(leads(&source));
	*word(block + 24) = 1;
	assert_false(leads(&source));
	source.at = UINT64_MAX - 7;
	assert_false(leads(&source));
}

/* The first variable that has a context is the one. */
static void one_of_several(void **state)
{
	struct duet_context_sources sources = {
		.of = {{.place = DUET_CONTEXT_FIXED, .at = 64},
		       {.place = DUET_CONTEXT_DISTANCE, .at = UINT64_MAX},
		       {.place = DUET_CONTEXT_FIXED, .at = 72}},
	};
	struct duet_context_record found;

	*word(thread_pointer + 72) = record;
	assert_int_equal(context_find(&sources, thread_pointer, &found), record);
	assert_int_equal(found.context.span_id[7], 0xcd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(at_a_distance, setup),
		cmocka_unit_test(in_a_module),
		cmocka_unit_test_setup(nothing_is_trusted, setup),
		cmocka_unit_test_setup(one_of_several, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
