/* SPDX-License-Identifier: MIT */
/* Two sources that describe the same code: methods have other ids, but must have the same names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/alike.h"

#define CODE 0x7f0000001000ull
#define RETURN (CODE + 16)
#define ID 7
#define OUTER (0x1000 | DUET_METHOD_BARE)
#define INNER (0x2000 | DUET_METHOD_BARE)

static struct intern strings;
static struct jvm *agent, *reader;

static int set_up(void **state)
{
	intern_init(&strings);
	agent = jvm_new(&strings);
	reader = jvm_new(&strings);
	jvm_set_other(agent, reader);
	return 0;
}

static int tear_down(void **state)
{
	jvm_free(agent);
	jvm_free(reader);
	intern_release(&strings);
	return 0;
}

static void add_method_at(struct jvm *jvm, uint64_t id, const char *name, uint32_t line, uint64_t bare)
{
	uint64_t space[32] = {0};
	struct duet_method *record = (struct duet_method *)space;
	struct duet_line one = {0, line};
	char *at = (char *)(record + 1);

	*record = (struct duet_method){
		.method = id, .class_len = 5, .name_len = (uint16_t)strlen(name), .line_count = 1, .bare = bare};
	memcpy(stpcpy(stpcpy(at, "La/B;"), name), &one, sizeof(one));
	assert_int_equal(jvm_apply(jvm, DUET_AGENT_METHOD, record, sizeof(space)), 0);
}

static void add_method(struct jvm *jvm, uint64_t id, const char *name, uint32_t line)
{
	add_method_at(jvm, id, name, line, 0);
}

/* One pc, at which `inner` is inlined into `outer`. */
static void add_code(struct jvm *jvm, uint32_t id, uint64_t inner, int32_t bci, uint64_t outer)
{
	struct {
		struct duet_code_load load;
		struct duet_code_pc pc;
		struct duet_java_frame frames[2];
	} record = {
		.load = {.method = outer, .address = CODE, .code_bytes = 64, .pc_count = 1, .frame_count = 2, .id = id},
		.pc = {.offset = RETURN - CODE, .depth = 2},
		.frames = {{.method = inner, .bci = bci}, {.method = outer, .bci = 9}},
	};

	assert_int_equal(jvm_apply(jvm, DUET_AGENT_CODE_LOAD, &record, sizeof(record)), 0);
}

static enum alike compare(void)
{
	const struct jvm_code *code = jvm_code_at(agent, RETURN - 1, 5, ID);
	struct duet_java_frame frames[JVM_INLINING_DEPTH];
	uint32_t depth, flags;

	assert_non_null(code);
	depth = jvm_code_frames(code, RETURN, true, frames, &flags);
	return alike_frames(agent, code, RETURN, true, (struct jvm_moment){.time_ns = 5}, frames, depth);
}

static void describe_by_agent(void)
{
	add_method(agent, 1, "outer", 10);
	add_method(agent, 2, "inner", 20);
	add_code(agent, ID, 2, 3, 1);
}

static void same_names(void **state)
{
	describe_by_agent();
	add_method(reader, OUTER, "outer", 10);
	add_method(reader, INNER, "inner", 20);
	add_code(reader, ID, INNER, 3, OUTER);
	assert_int_equal(compare(), ALIKE_AGREED);
}

static void another_name(void **state)
{
	describe_by_agent();
	add_method(reader, OUTER, "outer", 10);
	add_method(reader, INNER, "other", 20);
	add_code(reader, ID, INNER, 3, OUTER);
	assert_int_equal(compare(), ALIKE_DISAGREED);
}

static void another_line(void **state)
{
	describe_by_agent();
	add_method(reader, OUTER, "outer", 11);
	add_method(reader, INNER, "inner", 20);
	add_code(reader, ID, INNER, 3, OUTER);
	assert_int_equal(compare(), ALIKE_DISAGREED);
}

static void another_bci(void **state)
{
	describe_by_agent();
	add_method(reader, OUTER, "outer", 10);
	add_method(reader, INNER, "inner", 20);
	add_code(reader, ID, INNER, 4, OUTER);
	assert_int_equal(compare(), ALIKE_DISAGREED);
}

/* Nothing is compared with another compilation, without a name, or without another source. */
static void nothing_to_compare(void **state)
{
	describe_by_agent();
	assert_int_equal(compare(), ALIKE_ALONE);
	add_code(reader, ID + 1, INNER, 4, OUTER);
	assert_int_equal(compare(), ALIKE_ALONE);
	add_code(reader, ID, INNER, 3, OUTER);
	add_method(reader, OUTER, "outer", 10);
	assert_int_equal(compare(), ALIKE_ALONE);
	add_method(reader, INNER, "inner", 20);
	assert_int_equal(compare(), ALIKE_AGREED);
	jvm_set_other(agent, NULL);
	assert_int_equal(compare(), ALIKE_ALONE);
}

/* The agent has a jmethodID for the method, and reports its address. */
static void interpreted(void **state)
{
	const struct jvm_moment then = {.time_ns = 5};

	add_method_at(agent, 1, "outer", 10, OUTER);
	assert_int_equal(alike_interpreted(agent, 1, 0, then), ALIKE_ALONE);
	add_method(reader, INNER, "outer", 10);
	assert_int_equal(alike_interpreted(agent, 1, 0, then), ALIKE_ALONE);
	add_method(reader, OUTER, "outer", 10);
	assert_int_equal(alike_interpreted(agent, 1, 0, then), ALIKE_AGREED);
	assert_int_equal(alike_interpreted(agent, 2, 0, then), ALIKE_ALONE);
	add_method_at(agent, 2, "inner", 10, OUTER);
	assert_int_equal(alike_interpreted(agent, 2, 0, then), ALIKE_DISAGREED);
	add_method_at(agent, 3, "outer", 11, OUTER);
	assert_int_equal(alike_interpreted(agent, 3, 0, then), ALIKE_DISAGREED);
	add_method(agent, 4, "outer", 10); /* its address is not known */
	assert_int_equal(alike_interpreted(agent, 4, 0, then), ALIKE_ALONE);
	assert_int_equal(alike_interpreted(reader, OUTER, 0, then), ALIKE_ALONE);
}

#define WITH_SOURCES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOURCES(same_names),  WITH_SOURCES(another_name),	     WITH_SOURCES(another_line),
		WITH_SOURCES(another_bci), WITH_SOURCES(nothing_to_compare), WITH_SOURCES(interpreted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
