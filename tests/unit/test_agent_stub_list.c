/* SPDX-License-Identifier: MIT */
/* A made-up list, whose head lies before a variable that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory.c"
#include "safe_copy.c"
#include "no_blobs.h"
#include "hotspot/stubs.c"

#define CODE 0x10000u

static struct {
	uintptr_t before[BEFORE_BYTES / sizeof(uintptr_t)];
	uintptr_t variable;
	uintptr_t behind[BEHIND_BYTES / sizeof(uintptr_t)];
} statics;

static struct stub_node nodes[3];

uintptr_t jvmstructs_stub_variable(void)
{
	return (uintptr_t)&statics.variable;
}

bool jvmstructs_is_code(uintptr_t pc)
{
	return pc >= CODE && pc < CODE + 0x1000;
}

static uintptr_t text(const char *text)
{
	return (uintptr_t)text;
}

static int setup(void **state)
{
	memset(&statics, 0, sizeof(statics));
	nodes[0] = (struct stub_node){0, text("group"), text("first"), {CODE + 0x100, CODE + 0x180, 0x35}};
	nodes[1] = (struct stub_node){
		(uintptr_t)&nodes[0], text("group"), text("second"), {CODE + 0x180, CODE + 0x200, 0x35}};
	nodes[2] = (struct stub_node){
		(uintptr_t)&nodes[1], text("other"), text("third"), {CODE + 0x300, CODE + 0x400, 0x35}};
	statics.before[3] = (uintptr_t)&statics; /* a list of something else */
	statics.before[(BEFORE_BYTES - 15760) / sizeof(uintptr_t)] = (uintptr_t)&nodes[2]; /* as in JDK 27 */
	return 0;
}

static void expect(uintptr_t pc, const char *name, uintptr_t start, size_t bytes)
{
	struct listed_stub stub = {CODE + 0x80, 0x800, 0};

	stub_list_find(CODE + pc, &stub);
	if (name)
		assert_string_equal((const char *)stub.name, name);
	else
		assert_true(!stub.name);
	assert_true(stub.start == CODE + start);
	assert_int_equal(stub.bytes, bytes);
}

static void each_routine_is_found(void **state)
{
	expect(0x100, "first", 0x100, 0x80);
	expect(0x17f, "first", 0x100, 0x80);
	expect(0x180, "second", 0x180, 0x80);
	expect(0x3ff, "third", 0x300, 0x100);
}

static void code_between_two_has_no_name(void **state)
{
	expect(0x90, NULL, 0x80, 0x80);
	expect(0x200, NULL, 0x200, 0x100);
	expect(0x400, NULL, 0x400, 0x480);
}

/* JDK 8 has a number between the name and the code. */
static void the_nodes_of_jdk_8_are_read(void **state)
{
	for (size_t i = 0; i < 3; i++) {
		memmove(&nodes[i].range[1], &nodes[i].range[0], 2 * sizeof(uint64_t));
		nodes[i].range[0] = i;
	}
	expect(0x180, "second", 0x180, 0x80);
}

static void lists_of_a_hostile_jvm_end(void **state)
{
	nodes[0].next = (uintptr_t)&nodes[2]; /* a cycle */
	expect(0x240, NULL, 0x200, 0x100);
	nodes[1].next = 8; /* not mapped */
	expect(0x110, NULL, 0x80, 0x100);
	setup(NULL);
	nodes[1].range[1] = CODE - 1; /* ends before it begins */
	expect(0x190, NULL, 0x80, 0x280);
	nodes[2].range[1] = CODE + 0x2000; /* no code */
	expect(0x310, NULL, 0x80, 0x800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_routine_is_found, setup),
		cmocka_unit_test_setup(code_between_two_has_no_name, setup),
		cmocka_unit_test_setup(the_nodes_of_jdk_8_are_read, setup),
		cmocka_unit_test_setup(lists_of_a_hostile_jvm_end, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
