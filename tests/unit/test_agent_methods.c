/* SPDX-License-Identifier: MIT */
/* The records that the agent writes about methods and code, into a ring without a reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/answers.c"
#include "jvm/code.c"
#include "jvm/kept.c"
#include "hotspot/ring.c"

#define LANE_BYTES (256u << 10)
#define CODE 0x100000
#define UNLOADED 999

struct agent_jvm jvm = {.version = 17, .reads_methods = true};

static struct stay stay;
static const struct answers answers = {
	.ring = &stay.ring, .other_names = methods_ask_jvmti, .other_stub = code_find_stub, .freed_code = kept_copy};

static void answer_method(const struct answers *of, struct metadata_key key)
{
	answer_methods(of, &key, 1);
}

/* As a method of compiled code is answered. */
static bool answer_unasked(const struct answers *of, struct metadata_key key)
{
	return answered_add(&key) && answer(of, key, true);
}
static struct duet_ring_page page;
static struct duet_ring_lane *const lane = &page.lanes[DUET_LANE_METADATA];
static struct nmethod_record compiled; /* at CODE */
static size_t name_bytes;

/* ---- a made-up JVM ---- */

void jvm_deallocate(void *memory)
{
}

bool metadata_find(uint64_t key, struct metadata_method *ret)
{
	*ret = (struct metadata_method){.itself.address = key};
	return key != UNLOADED;
}

#define CHECK 0x1234

uint32_t metadata_check(const struct metadata_method *method, uint64_t key)
{
	(void)method, (void)key;
	return CHECK;
}

static char *long_text(char first)
{
	char *text = calloc(1, name_bytes + 1);

	memset(text, first, name_bytes);
	return text;
}

bool metadata_names_read(const struct metadata_method *method, struct metadata_names *ret)
{
	*ret = (struct metadata_names){
		.class_signature = long_text('c'),
		.name = long_text('n'),
		.signature = long_text('s'),
		.source = long_text('f'),
		.lines = calloc(UINT16_MAX, sizeof(struct duet_line)),
		.line_count = name_bytes > 100 ? UINT16_MAX : 1,
	};
	return true;
}

void metadata_names_release(struct metadata_names *names)
{
	free(names->class_signature);
	free(names->name);
	free(names->signature);
	free(names->source);
	free(names->lines);
}

void metadata_sort_lines(struct duet_line *lines, size_t count)
{
	(void)lines, (void)count;
}

enum nmethod_result nmethods_find(uintptr_t pc, uint32_t id, uint64_t now_ns, size_t most_bytes,
				  struct nmethod_record *ret)
{
	(void)most_bytes, (void)id, (void)now_ns;
	return pc >= CODE && copy_record(&compiled, ret) ? NMETHOD_FOUND : NMETHOD_GONE;
}

void nmethods_release(struct nmethod_record *record)
{
	free(record->pcs);
	free(record->frames);
}

bool nmethods_method(uintptr_t pc, struct metadata_method *ret)
{
	(void)pc, (void)ret;
	return false;
}

bool jvmstructs_blob_at(uintptr_t pc, struct code_blob *ret)
{
	(void)pc, (void)ret;
	return false;
}

bool jvmstructs_next_blob(unsigned int number, uintptr_t *cursor, struct code_blob *ret)
{
	(void)number, (void)cursor, (void)ret;
	return false;
}

bool jvmstructs_is_nmethod(const char *name)
{
	return false;
}

bool jvmstructs_code_heap(unsigned int number, uintptr_t *ret_low, uintptr_t *ret_high)
{
	(void)number, (void)ret_low, (void)ret_high;
	return false;
}

bool jvmstructs_layout(struct duet_jvm_layout *ret, int version)
{
	(void)ret, (void)version;
	return false;
}

void jvmstructs_blob_name(const struct code_blob *blob, char *name, size_t size)
{
	(void)blob, (void)size;
	name[0] = '\0';
}

struct stay *stay_enter(void)
{
	return NULL;
}

void stay_leave(void)
{
}

/* ---- the ring ---- */

static int open_ring(void **state)
{
	page = (struct duet_ring_page){0};
	stay = (struct stay){.ring.page = &page};
	stay.ring.lanes[DUET_LANE_METADATA] =
		(struct duet_lane_view){.lane = lane, .data = calloc(2, LANE_BYTES), .bytes = LANE_BYTES};
	name_bytes = 4;
	answers_reset();
	return 0;
}

static int close_ring(void **state)
{
	free(stay.ring.lanes[DUET_LANE_METADATA].data);
	nmethods_release(&compiled);
	compiled = (struct nmethod_record){0};
	return 0;
}

/* Returns the next record; NULL when there is none. */
static const struct duet_ring_record *next(void)
{
	const struct duet_ring_record *record =
		(const void *)(stay.ring.lanes[DUET_LANE_METADATA].data + lane->tail);

	if (lane->tail == lane->head)
		return NULL;
	lane->tail += record->size;
	return record;
}

static void expect_method(uint64_t key, bool is_extra)
{
	const struct duet_ring_record *record = next();
	const struct duet_method *method = (const void *)(record + 1);

	assert_non_null(record);
	assert_int_equal(record->type, DUET_AGENT_METHOD);
	assert_int_equal(method->method, key);
	assert_int_equal(method->is_extra, is_extra);
}

static void expect_type(enum duet_agent_record_type type)
{
	const struct duet_ring_record *record = next();

	assert_non_null(record);
	assert_int_equal(record->type, type);
	assert_null(next());
}

/* `count` pcs, 16 bytes apart, each in a method of its own, from 1 on, that is inlined in method 1000. */
static void compile(uint32_t count)
{
	compiled.load = (struct duet_code_load){.method = 1000, .address = CODE, .id = 7};
	compiled.load.pc_count = count;
	compiled.load.frame_count = 2 * count;
	compiled.pcs = calloc(count, sizeof(*compiled.pcs));
	compiled.frames = calloc(2 * count, sizeof(*compiled.frames));
	for (uint32_t i = 0; i < count; i++) {
		compiled.pcs[i] = (struct duet_code_pc){.offset = 16 * (i + 1), .frame = 2 * i, .depth = 2};
		compiled.frames[2 * i].method = i + 1;
		compiled.frames[2 * i + 1].method = 1000;
	}
}

static void test_names_come_with_the_code(void **state)
{
	compile(3);
	answer_code(&answers, CODE + 16, 7, 0); /* before the second pc */
	expect_method(2, true);
	expect_method(1000, true);
	expect_method(1, true);
	expect_method(3, true);
	expect_type(DUET_AGENT_CODE_LOAD);
	answer_code(&answers, CODE + 32, 7, 0);
	expect_type(DUET_AGENT_CODE_LOAD); /* all names were sent before */
	answers_reset();
	answer_code(&answers, CODE + 47, 7, 0);
	expect_method(3, true);
}

/* The code was freed a moment ago. */
static void test_names_come_with_kept_code(void **state)
{
	struct nmethod_record record;

	compile(1);
	assert_true(copy_record(&compiled, &record));
	kept_add(&record);
	answer_code(&answers, CODE - 1, 7, 0);
	expect_method(1, true);
	expect_method(1000, true);
	expect_type(DUET_AGENT_CODE_LOAD);
	kept_forget();
}

static void test_what_was_asked_for_is_always_told(void **state)
{
	for (int i = 0; i < 2; i++) {
		answer_method(&answers, (struct metadata_key){5, 0});
		expect_method(5, false);
	}
	assert_false(answer_unasked(&answers, (struct metadata_key){5, 0}));
	assert_null(next());
}

/* Methods are proven together. One that no longer exists keeps none of the others from being told. */
static void test_several_at_once(void **state)
{
	struct metadata_key keys[40];

	for (uint32_t i = 0; i < 40; i++)
		keys[i] = (struct metadata_key){10 + i, 0};
	answer_methods(&answers, keys, 40);
	for (uint32_t i = 0; i < 40; i++)
		expect_method(10 + i, false);
	keys[2].method = UNLOADED;
	answer_methods(&answers, keys, 3);
	expect_method(10, false);
	expect_method(11, false);
	expect_type(DUET_AGENT_GONE);
	answer_methods(&answers, keys, 0);
	assert_null(next());
}

/* Nobody waits for these records: there is no answer and no loss. */
static void test_unloaded(void **state)
{
	assert_false(answer_unasked(&answers, (struct metadata_key){UNLOADED, 0}));
	assert_null(next());
	assert_int_equal(page.counters[DUET_AGENT_METHOD_GONE], 0);
	answer_method(&answers, (struct metadata_key){UNLOADED, 0});
	expect_type(DUET_AGENT_GONE);
	assert_int_equal(page.counters[DUET_AGENT_METHOD_GONE], 1);
}

/* A key is another method's when its check differs, and then has other names in the loader. */
static void test_another_method_with_the_key(void **state)
{
	answer_method(&answers, (struct metadata_key){5, CHECK});
	expect_method(5, false);
	answer_method(&answers, (struct metadata_key){5, CHECK + 1});
	expect_type(DUET_AGENT_GONE);
	assert_false(answer_unasked(&answers, (struct metadata_key){5, CHECK}));
	assert_false(answer_unasked(&answers, (struct metadata_key){5, CHECK + 2}));
	assert_null(next());
	answers_reset();
	answer_method(&answers, (struct metadata_key){5, 0});
	expect_method(5, false);
	assert_true(answer_unasked(&answers, (struct metadata_key){5, CHECK}));
	expect_method(5, true);
}

static bool is_loaded(void *context, uint32_t unloads)
{
	return *(const uint32_t *)context == unloads;
}

/* The number of unloaded classes is compared with that of the sample for which the loader asks. */
static void test_unloaded_while_read(void **state)
{
	uint32_t now = 8;
	struct answers of_another = {.ring = &stay.ring, .is_loaded = is_loaded, .unloads = 8, .context = &now};
	const struct duet_ring_record *record;

	answer_method(&of_another, (struct metadata_key){5, 0});
	expect_method(5, false);
	now = 9;
	assert_false(answer_unasked(&of_another, (struct metadata_key){6, 0}));
	answer_method(&of_another, (struct metadata_key){5, 0});
	record = next();
	assert_int_equal(record->type, DUET_AGENT_GONE);
	assert_int_equal(((const struct duet_gone *)(record + 1))->want.unloads, 8);
}

static bool is_there(void *context)
{
	return *(const bool *)context;
}

/* Memory that cannot be read because the JVM has ended was not unloaded. */
static void test_ended(void **state)
{
	bool is_alive = false;
	const struct answers of_another = {.ring = &stay.ring, .is_there = is_there, .context = &is_alive};

	answer_method(&of_another, (struct metadata_key){UNLOADED, 0});
	answer_code(&of_another, CODE - 1, 7, 0);
	assert_null(next());
	assert_int_equal(page.counters[DUET_AGENT_METHOD_GONE], 0);
	is_alive = true;
	answer_method(&of_another, (struct metadata_key){UNLOADED, 0});
	expect_type(DUET_AGENT_GONE);
}

static void test_large_code_names_some(void **state)
{
	compile(500);
	answer_code(&answers, CODE + 16 * 400, 7, 0);
	expect_method(401, true);
	expect_method(1000, true);
	for (uint64_t key = 1; key <= METHODS_AT_ONCE - 2; key++)
		expect_method(key, true);
	expect_type(DUET_AGENT_CODE_LOAD);
}

static void test_names_leave_room_for_the_code(void **state)
{
	unsigned int methods = 0;
	const struct duet_ring_record *record;

	compile(500);
	name_bytes = 8000;
	answer_code(&answers, CODE, 7, 0);
	for (record = next(); record && record->type == DUET_AGENT_METHOD; record = next())
		methods++;
	assert_in_range(methods, 1, 8);
	assert_non_null(record);
	assert_int_equal(record->type, DUET_AGENT_CODE_LOAD);
	assert_int_equal(page.counters[DUET_AGENT_METADATA_FULL], 0);
}

/* The longest names that a class file can have, and more lines than code. */
static void test_a_method_fits_the_ring(void **state)
{
	const struct duet_ring_record *record;
	const struct duet_method *method;

	name_bytes = UINT16_MAX + 2;
	answer_method(&answers, (struct metadata_key){5, 0});
	record = next();
	assert_non_null(record);
	assert_true(record->size <= ring_metadata_most(&stay.ring));
	method = (const void *)(record + 1);
	assert_in_range(method->line_count, 1000, UINT16_MAX);
	assert_in_range(method->class_len, 1000, UINT16_MAX);
	assert_int_equal(((const char *)(method + 1))[method->class_len - 1], ';');
	assert_int_equal(((const char *)(method + 1))[method->class_len], 'n');
}

static void test_more_methods_than_are_remembered(void **state)
{
	for (uint64_t key = 1; key <= 3 * MAX_ANSWERED; key++) {
		assert_true(answer_unasked(&answers, (struct metadata_key){key << 3, 0}));
		lane->head = lane->tail = 0;
		memset(stay.ring.lanes[DUET_LANE_METADATA].data, 0, 256);
	}
}

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(test_names_come_with_the_code),
		WITH_RING(test_names_come_with_kept_code),
		WITH_RING(test_what_was_asked_for_is_always_told),
		WITH_RING(test_several_at_once),
		WITH_RING(test_unloaded),
		WITH_RING(test_another_method_with_the_key),
		WITH_RING(test_unloaded_while_read),
		WITH_RING(test_ended),
		WITH_RING(test_large_code_names_some),
		WITH_RING(test_names_leave_room_for_the_code),
		WITH_RING(test_a_method_fits_the_ring),
		WITH_RING(test_more_methods_than_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
