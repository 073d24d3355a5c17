/* SPDX-License-Identifier: MIT */
/* Each record is in a heap block of exactly its size, so that a sanitizer finds a check that reads past it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/records/validate.h"
#include "duet_agent.h"
#include "duet_config.h"
#include "duet_jvm.h"
#include "duet_record.h"

#define ROOM 16384
#define LARGEST DUET_MAX_ATTRIBUTE_BYTES

static bool kernel_ok(const void *record, size_t bytes)
{
	void *exact = malloc(bytes ? bytes : 1);
	bool ok;

	memcpy(exact, record, bytes);
	ok = record_check(exact, bytes);
	free(exact);
	return ok;
}

static bool agent_ok(uint16_t type, const void *payload, size_t bytes)
{
	void *exact = malloc(bytes ? bytes : 1);
	bool ok;

	memcpy(exact, payload, bytes);
	ok = agent_record_check(type, exact, bytes);
	free(exact);
	return ok;
}

static bool message_ok(const void *message, size_t bytes)
{
	void *exact = malloc(bytes ? bytes : 1);
	bool ok;

	memcpy(exact, message, bytes);
	ok = agent_message_check(exact, bytes);
	free(exact);
	return ok;
}

/* ---- from BPF ---- */

static struct duet_sample *make_sample(uint16_t kernel, uint16_t user)
{
	size_t bytes = sizeof(struct duet_sample) + ((size_t)kernel + user) * 8;
	struct duet_sample *sample = calloc(1, ROOM);

	sample->head = (struct duet_record){.size = (uint32_t)bytes,
					    .type = DUET_RECORD_SAMPLE,
					    .version = DUET_RECORD_VERSION,
					    .tgid = 1,
					    .tid = 2};
	sample->kernel_depth = kernel;
	sample->user_depth = user;
	return sample;
}

static void sample_of_any_depth_passes(void **state)
{
	static const uint16_t depths[][2] = {{0, 0}, {1, 0}, {0, 1}, {7, 9}, {DUET_MAX_STACK, DUET_MAX_USER_STACK}};

	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		struct duet_sample *sample = make_sample(depths[i][0], depths[i][1]);

		assert_true(kernel_ok(sample, sample->head.size));
		free(sample);
	}
}

static void sample_truncated_anywhere_fails(void **state)
{
	struct duet_sample *sample = make_sample(3, 2);
	uint32_t whole = sample->head.size;

	for (uint32_t bytes = 0; bytes < whole; bytes++) {
		sample->head.size = whole;
		assert_false(kernel_ok(sample, bytes));
		sample->head.size = bytes; /* and when the header agrees */
		assert_false(kernel_ok(sample, bytes));
	}
	sample->head.size = whole + 8;
	assert_false(kernel_ok(sample, whole + 8));
	free(sample);
}

/* clang-format off */
#define REFUSE(record, size, field, value)              \
	do {                                            \
		__typeof__(field) kept = (field);       \
		(field) = (value);                      \
		assert_false(kernel_ok(record, size));  \
		(field) = kept;                         \
		assert_true(kernel_ok(record, size));   \
	} while (0)
/* clang-format on */

static void header_fields_are_bound(void **state)
{
	struct duet_sample *sample = make_sample(1, 1);
	uint32_t whole = sample->head.size;

	REFUSE(sample, whole, sample->head.size, whole - 1);
	REFUSE(sample, whole, sample->head.size, whole + 1);
	REFUSE(sample, whole, sample->head.size, UINT32_MAX);
	REFUSE(sample, whole, sample->head.type, 0);
	REFUSE(sample, whole, sample->head.type, DUET_RECORD_EXEC);
	REFUSE(sample, whole, sample->head.type, DUET_RECORD_TYPE_MAX);
	REFUSE(sample, whole, sample->head.version, 0);
	REFUSE(sample, whole, sample->head.version, DUET_RECORD_VERSION + 1);
	REFUSE(sample, whole, sample->head.tgid, 0);
	REFUSE(sample, whole, sample->head.tid, 0);
	REFUSE(sample, whole, sample->runnable, sample->weight + 1);
	REFUSE(sample, whole, sample->role, DUET_ROLE_MAX);
	REFUSE(sample, whole, sample->role, DUET_ROLE_WAKER); /* without its id */
	free(sample);
}

/* A sample with two attributes, {type, bytes} each; `bytes` is what the sample claims for both. */
static bool attributes_ok(uint16_t type, uint16_t first, uint16_t second, uint32_t bytes)
{
	struct duet_sample *sample = make_sample(1, 1);
	unsigned char *at = (unsigned char *)sample + sample->head.size;
	bool ok;

	*(struct duet_attribute *)at = (struct duet_attribute){.type = type, .bytes = first};
	at += duet_attribute_size(first);
	*(struct duet_attribute *)at = (struct duet_attribute){.type = 1000, .bytes = second};
	sample->attribute_bytes = bytes;
	sample->head.size += bytes;
	ok = kernel_ok(sample, sample->head.size);
	free(sample);
	return ok;
}

static void attributes_lie_within_the_sample(void **state)
{
	assert_true(attributes_ok(DUET_ATTRIBUTE_SIZE, 8, 0, 24));
	assert_true(attributes_ok(DUET_ATTRIBUTE_CLASS, 3, 9, 16 + 24)); /* one of a type that is not known */
	assert_true(attributes_ok(DUET_ATTRIBUTE_CLASS, DUET_MAX_CLASS_BYTES, 0, 264 + 8));
	assert_true(attributes_ok(DUET_ATTRIBUTE_CLASS, 0, LARGEST - 16, LARGEST));
	assert_false(attributes_ok(DUET_ATTRIBUTE_CLASS, DUET_MAX_CLASS_BYTES + 1, 0, 272 + 8));
	assert_true(attributes_ok(DUET_ATTRIBUTE_STATE, DUET_MAX_STATE_BYTES, 0, 40 + 8));
	assert_false(attributes_ok(DUET_ATTRIBUTE_STATE, DUET_MAX_STATE_BYTES + 1, 0, 48 + 8));
	assert_true(attributes_ok(DUET_ATTRIBUTE_AGE, 8, 0, 24));
	assert_false(attributes_ok(DUET_ATTRIBUTE_AGE, 4, 0, 24));
	assert_false(attributes_ok(DUET_ATTRIBUTE_SIZE, 7, 0, 24));
	assert_false(attributes_ok(DUET_ATTRIBUTE_SIZE, 16, 0, 32));
	assert_false(attributes_ok(DUET_ATTRIBUTE_CLASS, 0, 1, 16)); /* the last reaches beyond the end */
	assert_false(attributes_ok(DUET_ATTRIBUTE_CLASS, 0, UINT16_MAX, 16));
	assert_false(attributes_ok(DUET_ATTRIBUTE_CLASS, 8, 0, 20));
	assert_false(attributes_ok(DUET_ATTRIBUTE_CLASS, 0, LARGEST - 8, LARGEST + 8));
}

/* An event of the program's own whose type has so many bytes, and its data. */
static bool user_event_ok(size_t type_bytes, size_t data_bytes)
{
	uint32_t bytes = duet_attribute_size((uint32_t)(type_bytes + 1 + data_bytes));
	struct duet_sample *sample = make_sample(1, 1);
	unsigned char *at = (unsigned char *)sample + sample->head.size;
	bool ok;

	*(struct duet_attribute *)at = (struct duet_attribute){
		.type = DUET_ATTRIBUTE_USER, .bytes = (uint16_t)(type_bytes + 1 + data_bytes)};
	memset(at + sizeof(struct duet_attribute), 'x', type_bytes);
	at[sizeof(struct duet_attribute) + type_bytes] = '\0';
	sample->attribute_bytes = bytes;
	sample->head.size += bytes;
	ok = kernel_ok(sample, sample->head.size);
	free(sample);
	return ok;
}

static void events_of_programs(void **state)
{
	assert_true(user_event_ok(1, 0));
	assert_true(user_event_ok(DUET_MAX_USER_TYPE, DUET_MAX_USER_DATA));
	assert_false(user_event_ok(DUET_MAX_USER_TYPE + 1, 0));
	assert_false(user_event_ok(1, DUET_MAX_USER_DATA + 1));
	assert_false(attributes_ok(DUET_ATTRIBUTE_USER, 0, 0, 16)); /* no type */
}

static bool resource_ok(uint8_t kind, uint32_t text_bytes, uint16_t claimed)
{
	struct duet_sample *sample = make_sample(1, 1);
	unsigned char *at = (unsigned char *)sample + sample->head.size;
	uint32_t bytes = duet_attribute_size(claimed);
	bool ok;

	*(struct duet_attribute *)at = (struct duet_attribute){.type = DUET_ATTRIBUTE_RESOURCE, .bytes = claimed};
	*(struct duet_resource *)(at + sizeof(struct duet_attribute)) =
		(struct duet_resource){.kind = kind, .text_bytes = text_bytes};
	sample->attribute_bytes = bytes;
	sample->head.size += bytes;
	ok = kernel_ok(sample, sample->head.size);
	free(sample);
	return ok;
}

static void resources_lie_within_their_attribute(void **state)
{
	assert_true(resource_ok(DUET_RESOURCE_FILE, 5, 8 + 5));
	assert_true(resource_ok(DUET_RESOURCE_PIPE, 0, 8));
	assert_true(resource_ok(DUET_RESOURCE_FILE, DUET_MAX_RESOURCE_TEXT, 8 + DUET_MAX_RESOURCE_TEXT));
	assert_false(resource_ok(DUET_RESOURCE_FILE, DUET_MAX_RESOURCE_TEXT + 1, 8 + DUET_MAX_RESOURCE_TEXT + 1));
	assert_false(resource_ok(DUET_RESOURCE_FILE, 6, 8 + 5));
	assert_false(resource_ok(DUET_RESOURCE_FILE, UINT32_MAX, 7));
	assert_false(resource_ok(DUET_RESOURCE_FILE, 0, 7));
	assert_false(resource_ok(0, 0, 8));
	assert_false(resource_ok(DUET_RESOURCE_MAX, 0, 8));
}

static void weights_of_early_stacks_are_bound(void **state)
{
	struct duet_slept_record record = {
		.head = {sizeof(record), DUET_RECORD_SLEPT, DUET_RECORD_VERSION, 1, 1, 1}, .id = 5, .weight = 2};

	assert_true(kernel_ok(&record, sizeof(record)));
	REFUSE(&record, sizeof(record), record.head.size, sizeof(record) - 8);
	REFUSE(&record, sizeof(record), record.id, 0);
	REFUSE(&record, sizeof(record), record.runnable, 3);
	REFUSE(&record, sizeof(record), record.attribute_bytes, 8);
}

static void attributes_of_weights_are_bound(void **state)
{
	struct {
		struct duet_slept_record slept;
		struct duet_attribute head;
		struct duet_resource resource;
	} record = {
		.slept = {.head = {sizeof(record), DUET_RECORD_SLEPT, DUET_RECORD_VERSION, 1, 1, 1},
			  .id = 5,
			  .weight = 2,
			  .attribute_bytes = sizeof(record) - sizeof(record.slept)},
		.head = {.type = DUET_ATTRIBUTE_RESOURCE, .bytes = sizeof(record.resource)},
		.resource = {.kind = DUET_RESOURCE_PIPE},
	};

	assert_true(kernel_ok(&record, sizeof(record)));
	REFUSE(&record, sizeof(record), record.slept.attribute_bytes, 0);
	REFUSE(&record, sizeof(record), record.slept.attribute_bytes, 8);
	REFUSE(&record, sizeof(record), record.slept.attribute_bytes, UINT32_MAX);
	REFUSE(&record, sizeof(record), record.resource.text_bytes, 1);
	REFUSE(&record, sizeof(record), record.head.bytes, 16);
}

static void sample_fields_are_bound(void **state)
{
	struct duet_sample *sample = make_sample(1, 1);
	uint32_t whole = sample->head.size;

	REFUSE(sample, whole, sample->kernel_depth, 0);
	REFUSE(sample, whole, sample->kernel_depth, 2);
	REFUSE(sample, whole, sample->kernel_depth, UINT16_MAX);
	REFUSE(sample, whole, sample->user_depth, UINT16_MAX);
	REFUSE(sample, whole, sample->id_depth, 1);
	REFUSE(sample, whole, sample->id_depth, UINT16_MAX);
	REFUSE(sample, whole, sample->left_out, 1); /* of what is not full */
	REFUSE(sample, whole, sample->no_signal, DUET_NO_SIGNAL_MAX);
	REFUSE(sample, whole, sample->event, DUET_MAX_EVENTS);
	REFUSE(sample, whole, sample->attribute_bytes, 8);
	REFUSE(sample, whole, sample->attribute_bytes, UINT32_MAX);
	REFUSE(sample, whole, sample->walk_end, DUET_WALK_END_MAX);
	REFUSE(sample, whole, sample->virtual_thread.name_bytes, DUET_MAX_VIRTUAL_NAME + 1);
	memset(sample->comm, 'x', sizeof(sample->comm));
	assert_false(kernel_ok(sample, whole));
	memset(sample->comm, 'x', sizeof(sample->comm) - 1);
	sample->comm[sizeof(sample->comm) - 1] = '\0';
	assert_true(kernel_ok(sample, whole));
	memset(sample->process_comm, 'x', sizeof(sample->process_comm));
	assert_false(kernel_ok(sample, whole));
	free(sample);
}

static void sample_too_deep_fails(void **state)
{
	struct duet_sample *sample = make_sample(DUET_MAX_STACK + 1, 0);

	assert_false(kernel_ok(sample, sample->head.size));
	free(sample);
	sample = make_sample(0, DUET_MAX_USER_STACK + 1);
	assert_false(kernel_ok(sample, sample->head.size));
	free(sample);
}

/* Behind the user frames, one for each, padded. */
static void ids_are_of_all_user_frames(void **state)
{
	struct duet_sample *sample = make_sample(1, 3);
	uint32_t whole = sample->head.size += 4 * sizeof(uint32_t);

	sample->id_depth = 3;
	assert_true(kernel_ok(sample, whole));
	REFUSE(sample, whole, sample->id_depth, 0);
	REFUSE(sample, whole, sample->id_depth, 2);
	REFUSE(sample, whole, sample->id_depth, 4);
	REFUSE(sample, whole, sample->user_depth, 4); /* the bytes of two are those of one address */
	free(sample);
}

static void process_records_are_bound(void **state)
{
	struct duet_process_record record = {.head = {.size = sizeof(record),
						      .type = DUET_RECORD_EXIT,
						      .version = DUET_RECORD_VERSION,
						      .tgid = 1,
						      .tid = 1}};

	assert_true(kernel_ok(&record, sizeof(record)));
	for (uint32_t bytes = 0; bytes < sizeof(record); bytes++) {
		struct duet_process_record shorter = record;

		shorter.head.size = bytes;
		assert_false(kernel_ok(&shorter, bytes));
	}
	record.head.type = DUET_RECORD_EXEC;
	assert_true(kernel_ok(&record, sizeof(record)));
	memset(record.comm, 'x', sizeof(record.comm));
	assert_false(kernel_ok(&record, sizeof(record)));
}

static void cgroup_records_are_bound(void **state)
{
	struct duet_cgroup_record record = {.head = {.size = sizeof(record),
						     .type = DUET_RECORD_CGROUP,
						     .version = DUET_RECORD_VERSION,
						     .tgid = 1,
						     .tid = 1}};

	assert_false(kernel_ok(&record, sizeof(record))); /* no path */
	record.path[0] = '/';
	assert_true(kernel_ok(&record, sizeof(record)));
	record.head.size--;
	assert_false(kernel_ok(&record, sizeof(record) - 1));
	record.head.size++;
	memset(record.path, '/', sizeof(record.path));
	assert_false(kernel_ok(&record, sizeof(record)));
}

/* ---- from an agent ---- */

/* Passes with its own size and up to 7 bytes of padding, and with no other. */
static void assert_exact(uint16_t type, const void *payload, size_t whole)
{
	for (size_t bytes = 0; bytes < whole + 24; bytes++) {
		bool fits = bytes >= whole && bytes < whole + 8;

		if (agent_ok(type, payload, bytes) != fits)
			fail_msg("type %u: %zu of %zu bytes must %s", type, bytes, whole, fits ? "pass" : "fail");
	}
}

static void agent_records_fill_their_bytes(void **state)
{
	_Alignas(8) unsigned char room[ROOM] = {0};

	*(struct duet_java_sample *)room = (struct duet_java_sample){.java_depth = 5};
	assert_exact(DUET_AGENT_JAVA_SAMPLE, room, sizeof(struct duet_java_sample) + 5 * 16);
	*(struct duet_method *)room = (struct duet_method){
		.class_len = 5, .name_len = 4, .signature_len = 3, .source_len = 2, .line_count = 7};
	assert_exact(DUET_AGENT_METHOD, room, sizeof(struct duet_method) + 14 + 7 * 8);
	memset(room, 0, sizeof(room));
	*(struct duet_code_load *)room = (struct duet_code_load){.pc_count = 2, .frame_count = 3};
	assert_exact(DUET_AGENT_CODE_LOAD, room, sizeof(struct duet_code_load) + 2 * 16 + 3 * 16);
	assert_exact(DUET_AGENT_CODE_UNLOAD, room, sizeof(struct duet_code_unload));
	assert_exact(DUET_AGENT_GONE, room, sizeof(struct duet_gone));
	*(struct duet_stub *)room = (struct duet_stub){.name_len = 11};
	assert_exact(DUET_AGENT_STUB, room, sizeof(struct duet_stub) + 11);
	*(struct duet_thread *)room = (struct duet_thread){.name_len = 13};
	assert_exact(DUET_AGENT_THREAD, room, sizeof(struct duet_thread) + 13);
	*(struct duet_code_heap *)room = (struct duet_code_heap){.low = 1, .high = 2};
	assert_exact(DUET_AGENT_CODE_HEAP, room, sizeof(struct duet_code_heap));
}

static void agent_counts_are_bound(void **state)
{
	_Alignas(8) unsigned char room[ROOM] = {0};
	struct duet_java_sample *sample = (void *)room;
	struct duet_method *method = (void *)room;
	struct duet_code_load *code = (void *)room;

	sample->java_depth = UINT32_MAX;
	assert_false(agent_ok(DUET_AGENT_JAVA_SAMPLE, room, ROOM));
	sample->java_depth = 1u << 28; /* times 16 wraps to zero in 32 bits */
	assert_false(agent_ok(DUET_AGENT_JAVA_SAMPLE, room, sizeof(*sample)));
	memset(room, 0, sizeof(room));
	method->line_count = 1u << 29;
	assert_false(agent_ok(DUET_AGENT_METHOD, room, sizeof(*method)));
	method->line_count = UINT32_MAX;
	assert_false(agent_ok(DUET_AGENT_METHOD, room, ROOM));
	memset(room, 0, sizeof(room));
	code->pc_count = 1u << 28;
	assert_false(agent_ok(DUET_AGENT_CODE_LOAD, room, sizeof(*code)));
	code->pc_count = UINT32_MAX;
	code->frame_count = UINT32_MAX;
	assert_false(agent_ok(DUET_AGENT_CODE_LOAD, room, ROOM));
}

/* Like BPF's samples, but kernel frames must be kernel addresses, and a JVM knows nothing of processes. */
static void agent_samples_are_samples(void **state)
{
	struct duet_sample *sample = make_sample(0, 3);
	struct duet_sample *with_kernel = make_sample(1, 3);

	assert_true(agent_ok(DUET_AGENT_SAMPLE, sample, sample->head.size));
	assert_false(agent_ok(DUET_AGENT_SAMPLE, sample, sample->head.size - 8));
	sample->user_depth = DUET_MAX_USER_STACK + 1;
	assert_false(agent_ok(DUET_AGENT_SAMPLE, sample, sample->head.size));
	sample->user_depth = 3;
	sample->walk_end = DUET_WALK_END_MAX;
	assert_false(agent_ok(DUET_AGENT_SAMPLE, sample, sample->head.size));
	sample->walk_end = 0;
	sample->role = DUET_ROLE_WAKER;
	sample->waker = 1;
	assert_false(agent_ok(DUET_AGENT_SAMPLE, sample, sample->head.size));
	assert_true(kernel_ok(sample, sample->head.size));
	sample->role = 0;
	sample->waker = 0;
	sample->head.type = DUET_RECORD_EXIT;
	assert_false(agent_ok(DUET_AGENT_SAMPLE, sample, sample->head.size));
	with_kernel->stack[0] = 1ull << 63;
	assert_true(agent_ok(DUET_AGENT_SAMPLE, with_kernel, with_kernel->head.size));
	with_kernel->stack[0]--;
	assert_false(agent_ok(DUET_AGENT_SAMPLE, with_kernel, with_kernel->head.size));
	free(sample);
	free(with_kernel);
}

/* From either side, of deep stacks: whole runs of them, at their places. */
static void frames_have_their_place(void **state)
{
	struct duet_frames_record part = {
		.head = {sizeof(part), DUET_RECORD_FRAMES, DUET_RECORD_VERSION, .tgid = 1, .tid = 2},
		.first = DUET_LEAF_FRAMES,
	};

	assert_true(kernel_ok(&part, sizeof(part)));
	assert_true(agent_ok(DUET_AGENT_FRAMES, &part, sizeof(part)));
	assert_false(agent_ok(DUET_AGENT_SAMPLE, &part, sizeof(part)));
	REFUSE(&part, sizeof(part), part.first, 0);
	REFUSE(&part, sizeof(part), part.first, DUET_LEAF_FRAMES - DUET_ROOT_FRAMES);
	REFUSE(&part, sizeof(part), part.first, DUET_LEAF_FRAMES + 1);
	REFUSE(&part, sizeof(part), part.first, DUET_MAX_WALK);
	REFUSE(&part, sizeof(part), part.first, UINT32_MAX - DUET_ROOT_FRAMES + 1);
	assert_false(kernel_ok(&part, sizeof(part) - 8));
	part.head.size -= 8;
	assert_false(kernel_ok(&part, sizeof(part) - 8));
}

static void java_depth_has_a_limit(void **state)
{
	size_t bytes = sizeof(struct duet_java_sample) + (DUET_MAX_JAVA_DEPTH + 1) * sizeof(struct duet_java_frame);
	struct duet_java_sample *sample = calloc(1, bytes);

	sample->java_depth = DUET_MAX_JAVA_DEPTH;
	assert_true(agent_ok(DUET_AGENT_JAVA_SAMPLE, sample, bytes - sizeof(struct duet_java_frame)));
	sample->java_depth = DUET_MAX_JAVA_DEPTH + 1;
	assert_false(agent_ok(DUET_AGENT_JAVA_SAMPLE, sample, bytes));
	free(sample);
}

static void code_pcs_stay_inside_their_frames(void **state)
{
	struct {
		struct duet_code_load load;
		struct duet_code_pc pc;
		struct duet_java_frame frames[2];
	} code = {.load = {.pc_count = 1, .frame_count = 2}, .pc = {.frame = 1, .depth = 1}};

	assert_true(agent_ok(DUET_AGENT_CODE_LOAD, &code, sizeof(code)));
	code.pc.depth = 2;
	assert_false(agent_ok(DUET_AGENT_CODE_LOAD, &code, sizeof(code)));
	code.pc = (struct duet_code_pc){.frame = UINT32_MAX, .depth = 2};
	assert_false(agent_ok(DUET_AGENT_CODE_LOAD, &code, sizeof(code)));
}

static void address_ranges_do_not_wrap(void **state)
{
	struct duet_code_load code = {.address = UINT64_MAX - 1, .code_bytes = 16};
	struct duet_stub stub = {.address = UINT64_MAX - 1, .code_bytes = 16};
	struct duet_code_heap heap = {.low = 2, .high = 2};

	assert_false(agent_ok(DUET_AGENT_CODE_LOAD, &code, sizeof(code)));
	assert_false(agent_ok(DUET_AGENT_STUB, &stub, sizeof(stub)));
	assert_false(agent_ok(DUET_AGENT_CODE_HEAP, &heap, sizeof(heap)));
}

/* clang-format off */
#define REFUSE_LAYOUT(layout, field, value)                                                                            \
	do {                                                                                                           \
		struct duet_jvm_layout bad_ = (layout);                                                                \
		bad_.field = (value);                                                                                  \
		assert_false(agent_ok(DUET_AGENT_LAYOUT, &bad_, sizeof(bad_)));                                        \
	} while (0)
/* clang-format on */

/* BPF reads by these offsets, so each must lie in the bytes that were copied. */
static void layout_is_bound(void **state)
{
	struct duet_jvm_layout layout = {
		.heaps = {{.low = 4096, .high = 8192, .segmap = 1, .segment_shift = 7}},
		.interpreter_low = 1,
		.interpreter_high = 3,
		.entries_low = 1,
		.entries_high = 2,
		.call_stub_return = 9,
		.block_header_bytes = 16,
		.block_used = 8,
		.blob_code_begin = DUET_JVM_NO_FIELD,
		.nmethod_entry = DUET_JVM_NO_FIELD,
		.const_bytes = 48,
		.frame_bcp = -8,
	};

	assert_true(agent_ok(DUET_AGENT_LAYOUT, &layout, sizeof(layout)));
	assert_false(agent_ok(DUET_AGENT_LAYOUT, &layout, sizeof(layout) - 1));
	REFUSE_LAYOUT(layout, heaps[0].high, 4096);
	REFUSE_LAYOUT(layout, heaps[0].segment_shift, 64);
	REFUSE_LAYOUT(layout, heaps[1].low, 1);
	REFUSE_LAYOUT(layout, interpreter_high, 1);
	REFUSE_LAYOUT(layout, entries_high, 1);
	REFUSE_LAYOUT(layout, call_stub_return, 0);
	REFUSE_LAYOUT(layout, block_used, 16);
	REFUSE_LAYOUT(layout, blob_name, DUET_BLOB_BYTES);
	REFUSE_LAYOUT(layout, blob_bytes, DUET_JVM_NO_FIELD);
	REFUSE_LAYOUT(layout, blob_code_offset, DUET_JVM_NO_FIELD);
	REFUSE_LAYOUT(layout, nmethod_entry_offset, DUET_JVM_NO_FIELD);
	REFUSE_LAYOUT(layout, nmethod_original_pc, DUET_BLOB_BYTES - 7);
	REFUSE_LAYOUT(layout, const_pool, DUET_CONST_METHOD_BYTES - 7);
	REFUSE_LAYOUT(layout, const_code_bytes, DUET_CONST_METHOD_BYTES - 1);
	REFUSE_LAYOUT(layout, const_bytes, 0);
	REFUSE_LAYOUT(layout, const_bytes, DUET_CONST_METHOD_BYTES + 1);
	REFUSE_LAYOUT(layout, holder_ids, DUET_MAX_OFFSET);
	REFUSE_LAYOUT(layout, pool_version, DUET_MAX_OFFSET);
	REFUSE_LAYOUT(layout, frame_bcp, -3);
}

static void unknown_agent_types_fail(void **state)
{
	static const uint64_t zeros[ROOM / 8];

	for (size_t bytes = 0; bytes < 128; bytes++) {
		assert_false(agent_ok(0, zeros, bytes));
		assert_false(agent_ok(DUET_AGENT_RECORD_TYPE_MAX, zeros, bytes));
		assert_false(agent_ok(UINT16_MAX, zeros, bytes));
	}
}

/* ---- control messages ---- */

static void hello_is_bound(void **state)
{
	struct duet_message_hello hello = {
		.head = {.size = sizeof(hello), .type = DUET_MESSAGE_HELLO, .version = DUET_AGENT_VERSION}};

	for (uint32_t bytes = 0; bytes < sizeof(hello); bytes++) {
		assert_false(message_ok(&hello, bytes));
		hello.head.size = bytes;
		assert_false(message_ok(&hello, bytes));
		hello.head.size = sizeof(hello);
	}
	assert_true(message_ok(&hello, sizeof(hello)));
	hello.head.version++;
	assert_false(message_ok(&hello, sizeof(hello)));
	hello.head.version--;
	memset(hello.vm_version, 'x', sizeof(hello.vm_version));
	assert_false(message_ok(&hello, sizeof(hello)));
	hello.vm_version[0] = '\0';
	memset(hello.vm_name, 'x', sizeof(hello.vm_name));
	assert_false(message_ok(&hello, sizeof(hello)));
}

static void started_is_bound(void **state)
{
	struct duet_message_started started = {
		.head = {.size = sizeof(started), .type = DUET_MESSAGE_STARTED, .version = DUET_AGENT_VERSION},
		.signo = 64};

	assert_true(message_ok(&started, sizeof(started)));
	started.error = -5;
	assert_true(message_ok(&started, sizeof(started)));
	started.error = INT32_MIN; /* its negative is no number */
	assert_false(message_ok(&started, sizeof(started)));
	started.error = 1;
	assert_false(message_ok(&started, sizeof(started)));
	started.error = 0;
	started.signo = 65;
	assert_false(message_ok(&started, sizeof(started)));
	started.signo = 1;
	started.engine = DUET_ENGINE_ID_MAX;
	assert_false(message_ok(&started, sizeof(started)));
	started.engine = DUET_ENGINE_PERF;
	assert_true(message_ok(&started, sizeof(started)));
	memset(started.why, 'x', sizeof(started.why));
	assert_false(message_ok(&started, sizeof(started)));
}

static void agents_send_no_orders(void **state)
{
	struct duet_message message = {.size = sizeof(message), .version = DUET_AGENT_VERSION};

	for (uint16_t type = 0; type < DUET_MESSAGE_TYPE_MAX; type++) {
		message.type = type;
		assert_int_equal(message_ok(&message, sizeof(message)),
				 type == DUET_MESSAGE_STOPPED || type == DUET_MESSAGE_FINISHED ||
					 type == DUET_MESSAGE_ENDING || type == DUET_MESSAGE_MAPPED ||
					 type == DUET_MESSAGE_UNNAMED || type == DUET_MESSAGE_NO_JVM ||
					 type == DUET_MESSAGE_HALF);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_of_any_depth_passes),
		cmocka_unit_test(sample_truncated_anywhere_fails),
		cmocka_unit_test(header_fields_are_bound),
		cmocka_unit_test(sample_fields_are_bound),
		cmocka_unit_test(attributes_lie_within_the_sample),
		cmocka_unit_test(events_of_programs),
		cmocka_unit_test(resources_lie_within_their_attribute),
		cmocka_unit_test(weights_of_early_stacks_are_bound),
		cmocka_unit_test(attributes_of_weights_are_bound),
		cmocka_unit_test(sample_too_deep_fails),
		cmocka_unit_test(ids_are_of_all_user_frames),
		cmocka_unit_test(process_records_are_bound),
		cmocka_unit_test(cgroup_records_are_bound),
		cmocka_unit_test(agent_records_fill_their_bytes),
		cmocka_unit_test(agent_counts_are_bound),
		cmocka_unit_test(agent_samples_are_samples),
		cmocka_unit_test(frames_have_their_place),
		cmocka_unit_test(java_depth_has_a_limit),
		cmocka_unit_test(code_pcs_stay_inside_their_frames),
		cmocka_unit_test(address_ranges_do_not_wrap),
		cmocka_unit_test(layout_is_bound),
		cmocka_unit_test(unknown_agent_types_fail),
		cmocka_unit_test(hello_is_bound),
		cmocka_unit_test(started_is_bound),
		cmocka_unit_test(agents_send_no_orders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
