/* SPDX-License-Identifier: MIT */
/* The ways from byte code to calls of stubs, in a made-up program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/stub_callers.c"
#include "hotspot/bytecodes.c"

#define CALL(callee) "\xb8" callee "\0" /* invokestatic; HotSpot's operand, here the callee's index below */

static const struct {
	const char *name, *code, *types;
	uint32_t bytes;
} methods[] = {
#define METHOD(name, code)                                                                                             \
	{                                                                                                              \
		name, code, "(Ljava/lang/Object;)V", sizeof(code) - 1                                                  \
	}
#define TYPED(types, code)                                                                                             \
	{                                                                                                              \
		"LA;typed ", code, types, sizeof(code) - 1                                                             \
	}
	METHOD("Ljava/lang/System;arraycopy ", ""), /* 0: native */
	METHOD("LA;copy ", CALL("\0")), /* 1 */
	METHOD("LA;rest ", "\x01\x73"), /* 2: drem */
	METHOD("Ljava/lang/Math;pow ", CALL("\2")), /* 3: an intrinsic, whose byte code counts for other stubs */
	METHOD("LA;main ", CALL("\1") CALL("\3") CALL("\2") CALL("\1") "\xa7\xff\xfa"), /* 4: goto 6 from 12 */
	METHOD("LA;deep ", CALL("\4")), /* 5 */
	METHOD("LA;itself ", CALL("\6")), /* 6 */
	TYPED("(I[[CLA;)I", CALL("\0")), /* 7 */
	TYPED("()V", "\xb4\7\0" CALL("\0")), /* 8: getfield of type 7 */
	TYPED("([B)V", "\xbc\6" CALL("\0")), /* 9: new float[] */
	TYPED("()[LA;", CALL("\2") CALL("\0")), /* 10: a call whose result is no array */
	TYPED("LA;", "\xb5\13\0"), /* 11: putfield of its own type */
	TYPED("D", "\xb5\14\0"), /* 12: the same of a number */
	METHOD("LA;two ", CALL("\1") CALL("\0")), /* 13 */
	METHOD("LA;shared ", CALL("\2") CALL("\15")), /* 14: two() leads to one stub in two ways */
	METHOD("LI;abstract ", ""), /* 15: class 1 implements it by copy() */
	METHOD("LA;virtual ", "\xb9\17\0\1\0"), /* 16: invokeinterface abstract() */
};

bool metadata_find(uint64_t key, struct metadata_method *ret)
{
	*ret = (struct metadata_method){.itself.address = (uintptr_t)key};
	return key < sizeof(methods) / sizeof(*methods);
}

struct metadata_key metadata_key(const struct metadata_method *method)
{
	return (struct metadata_key){method->itself.address, 0};
}

uint8_t *metadata_code(const struct metadata_method *method, uint32_t *ret_bytes)
{
	uint8_t *code = malloc(100);

	*ret_bytes = methods[method->itself.address].bytes;
	return memcpy(code, methods[method->itself.address].code, *ret_bytes);
}

bool metadata_callee(const struct metadata_method *method, uint16_t operand, struct metadata_method *ret)
{
	return metadata_find(operand, ret);
}

bool metadata_implementation(uintptr_t class, const struct metadata_method *method, uint32_t *budget,
			     struct metadata_method *ret)
{
	return class == 1 && method->itself.address == 15 && --*budget && metadata_find(1, ret);
}

/* Of a field: that of the method with its number. */
char *metadata_types(const struct metadata_method *method, uint8_t opcode, uint16_t operand)
{
	return strdup(methods[opcode ? operand : method->itself.address].types);
}

char *metadata_name(const struct metadata_method *method)
{
	return strdup(methods[method->itself.address].name);
}

static bool is_call(const void *context, const struct duet_java_frame *frame)
{
	return context && frame->method == 4 && frame->bci == 6;
}

static struct stub_callers search_for(const char *stub, uint64_t *barren, uint32_t *budget)
{
	return (struct stub_callers){.kind = stub_callers_kind(stub),
				     .is_call = is_call,
				     .barren = barren,
				     .budget = budget,
				     .limit = STUB_CALLERS_NEAR};
}

/* Expects `ways`, and if there is one, its innermost method, depth and bci in the first method. */
static void expect(const char *stub, uint64_t from, int32_t begin, int32_t end, bool calls, uint32_t ways,
		   uint64_t last, uint32_t depth, int32_t bci)
{
	uint64_t barren[STUB_CALLERS_BARREN] = {0};
	uint32_t budget = 1000;
	struct stub_callers search = search_for(stub, barren, &budget);

	search.context = calls ? "" : NULL;
	assert_true(search.kind);
	stub_callers_find(&search, from, begin, end);
	assert_int_equal(search.ways, ways);
	assert_true(budget);
	if (ways != 1)
		return;
	assert_int_equal(search.depth, depth);
	assert_int_equal(search.way[depth - 1].method, last);
	assert_int_equal(search.way[0].bci, bci);
}

static void test_ways(void **state)
{
	expect("jbyte_disjoint_arraycopy", 4, 0, INT32_MAX, false, 1, 1, 2, 0); /* twice the same methods */
	expect("jbyte_disjoint_arraycopy", 5, 0, INT32_MAX, false, 1, 1, 3, 0);
	expect("libmPow", 4, 0, INT32_MAX, false, 1, 4, 1, 3);
	expect("dpow", 4, 0, INT32_MAX, false, 1, 4, 1, 3);
	expect("libmFmod", 4, 0, INT32_MAX, false, 2, 0, 0, 0); /* through pow() and rest() */
	expect("libmLog10", 4, 0, INT32_MAX, false, 0, 0, 0, 0);
	expect("jbyte_disjoint_arraycopy", 6, 0, INT32_MAX, false, 0, 0, 0, 0); /* it ends */
}

static void test_only_between(void **state)
{
	expect("jbyte_disjoint_arraycopy", 4, 1, INT32_MAX, false, 1, 1, 2, 9);
	expect("libmFmod", 4, 4, INT32_MAX, false, 1, 2, 2, 6);
	expect("libmFmod", 4, 4, INT32_MAX, true, 0, 0, 0, 0); /* what is called is not inlined */
	expect("libmFmod", 4, 12, 12, false, 1, 2, 2, 6); /* a jump back stands for its loop */
	expect("dpow", 4, 12, 12, false, 0, 0, 0, 0);
	expect("dpow", 4, -1, -1, false, 0, 0, 0, 0);
}

static uint32_t ways_of(const char *stub, uint64_t from, uint32_t limit)
{
	uint64_t barren[STUB_CALLERS_BARREN] = {0};
	uint32_t budget = 1000;
	struct stub_callers search = {.kind = stub_callers_kind(stub),
				      .is_call = is_call,
				      .barren = barren,
				      .budget = &budget,
				      .limit = limit};

	stub_callers_find(&search, from, 0, INT32_MAX);
	if (!search.ways && limit < STUB_CALLERS_DEPTH) { /* what was barren is not for longer ways */
		search.limit = STUB_CALLERS_DEPTH;
		stub_callers_find(&search, from, 0, INT32_MAX);
	}
	return search.ways;
}

/* A method copies arrays of the types that it has. */
static void test_types(void **state)
{
	static const struct {
		const char *stub;
		uint32_t ways[4]; /* of methods 7 to 10 */
	} rows[] = {
		{"jbyte_disjoint_arraycopy", {0, 0, 1, 0}},
		{"jshort_arraycopy", {1, 1, 0, 0}},
		{"arrayof_jint_disjoint_arraycopy", {1, 1, 1, 1}}, /* also of references */
		{"oop_disjoint_arraycopy", {1, 1, 0, 1}},
		{"jlong_arraycopy", {1, 1, 1, 1}}, /* of any type, by words */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (uint64_t from = 7; from < 11; from++)
			assert_int_equal(ways_of(rows[i].stub, from, STUB_CALLERS_NEAR), rows[i].ways[from - 7]);
}

/* Two ways have their first methods in common; what is met twice is no dead end. */
static void test_common_part(void **state)
{
	uint64_t barren[STUB_CALLERS_BARREN] = {0};
	uint32_t budget = 1000;
	struct stub_callers search = search_for("jbyte_disjoint_arraycopy", barren, &budget);
	struct stub_callers again = search;

	stub_callers_find(&search, 14, 0, INT32_MAX);
	assert_int_equal(search.ways, 2);
	assert_int_equal(search.depth, 2);
	assert_int_equal(search.way[1].method, 13);
	stub_callers_find(&again, 4, 0, INT32_MAX);
	stub_callers_find(&again, 4, 0, INT32_MAX);
	assert_int_equal(again.ways, 1);
	again = search_for("jbyte_disjoint_arraycopy", barren, &budget);
	stub_callers_find(&again, 4, 9, INT32_MAX);
	assert_int_equal(again.ways, 1);
}

static void test_implementations(void **state)
{
	static const uintptr_t classes[] = {2, 1};
	uint64_t barren[STUB_CALLERS_BARREN] = {0};
	uint32_t budget = 1000;
	struct stub_callers search = search_for("jbyte_disjoint_arraycopy", barren, &budget);
	struct stub_callers other = search;

	search.classes = classes;
	search.class_count = 2;
	stub_callers_find(&search, 16, 0, INT32_MAX);
	assert_int_equal(search.ways, 1);
	assert_int_equal(search.depth, 2);
	assert_int_equal(search.way[1].method, 1);
	memset(barren, 0, sizeof(barren));
	other.classes = classes;
	other.class_count = 1;
	stub_callers_find(&other, 16, 0, INT32_MAX);
	assert_int_equal(other.ways, 0);
}

static void test_long_ways(void **state)
{
	assert_int_equal(ways_of("libmPow", 5, 2), 1);
	assert_int_equal(ways_of("jbyte_arraycopy", 5, 1), 1);
	assert_int_equal(ways_of("libmLog10", 5, 1), 0);
}

/* Of the JVM's functions, barriers of stores are called with some collectors only. */
static void test_barriers(void **state)
{
	assert_true(stub_callers_is_runtime(stub_callers_kind(STUB_CALLERS_CARDS)));
	assert_true(stub_callers_is_runtime(stub_callers_kind(STUB_CALLERS_RUNTIME)));
	assert_false(stub_callers_is_runtime(stub_callers_kind("dpow")));
	assert_false(stub_callers_is_runtime(stub_callers_kind(STUB_CALLERS_NANOS)));
	assert_int_equal(ways_of(STUB_CALLERS_NANOS, 2, 1), 0);
	assert_int_equal(ways_of(STUB_CALLERS_RUNTIME, 2, 1), 1); /* drem */
	assert_int_equal(ways_of(STUB_CALLERS_CARDS, 2, 1), 1);
	assert_int_equal(ways_of(STUB_CALLERS_RUNTIME, 11, 1), 1);
	assert_int_equal(ways_of(STUB_CALLERS_RUNTIME, 12, 1), 0);
	assert_int_equal(ways_of(STUB_CALLERS_CARDS, 11, 1), 0);
	assert_int_equal(ways_of(STUB_CALLERS_OLD, 3, 1), 1);
	assert_int_equal(ways_of(STUB_CALLERS_OLD_CARDS, 11, 1), 0);
	assert_int_equal(ways_of("C1 Runtime g1_post_barrier_slow_blob", 11, 1), 1);
}

static void test_names(void **state)
{
	assert_int_equal(stub_callers_kind("I2C/C2I adapters"), 0);
	assert_int_equal(stub_callers_kind("dsin"), stub_callers_kind("libmSin"));
	assert_int_not_equal(stub_callers_kind("dlog"), stub_callers_kind("dlog10"));
	assert_int_not_equal(stub_callers_kind("unsafe_arraycopy"), stub_callers_kind("jint_arraycopy"));
}

static void test_budget(void **state)
{
	uint64_t barren[STUB_CALLERS_BARREN] = {0};
	uint32_t budget = 2 * STUB_CALLERS_CALL;
	struct stub_callers search = {
		.kind = stub_callers_kind("dpow"), .is_call = is_call, .barren = barren, .budget = &budget, .limit = 3};

	stub_callers_find(&search, 5, 0, INT32_MAX);
	assert_int_equal(budget, 0);
	assert_int_equal(search.ways, 0);
	budget = 3; /* byte code that calls nothing is not free either */
	for (int i = 0; i < 3; i++)
		stub_callers_find(&search, 2, 0, INT32_MAX);
	assert_int_equal(budget, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),	  cmocka_unit_test(test_only_between), cmocka_unit_test(test_types),
		cmocka_unit_test(test_common_part),
		cmocka_unit_test(test_implementations),
		cmocka_unit_test(test_long_ways), cmocka_unit_test(test_barriers),     cmocka_unit_test(test_names),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
