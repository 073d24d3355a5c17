/* SPDX-License-Identifier: MIT */
/* A made-up blob with two stubs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot/stubs.c"
#include "memory.c"
#include "safe_copy.c"
#include "no_blobs.h"

static struct {
	uint64_t before[8];
	struct stub_head first;
	unsigned char first_code[32];
	struct stub_head second;
	unsigned char second_code[128];
} blob __attribute__((aligned(8)));

bool jvmstructs_is_code(uintptr_t pc)
{
	return pc - (uintptr_t)&blob < sizeof(blob);
}

uintptr_t jvmstructs_stub_variable(void)
{
	return 0;
}

static int setup(void **state)
{
	memset(&blob, 0x8b, sizeof(blob));
	blob.first = (struct stub_head){.index = 9, .call_offset = 20, .class_offset = 4, .is_vtable = 1};
	blob.second = (struct stub_head){
		.next = (uintptr_t)&blob.first, .index = 3, .call_offset = 90, .class_offset = 0, .padding = 7};
	return 0;
}

static void expect(const void *pc, const char *name, const void *start, size_t bytes)
{
	struct vtable_stub stub;

	assert_true(vtables_find((uintptr_t)pc, (uintptr_t)&blob, &stub));
	assert_string_equal(stub.name, name);
	assert_true(stub.start == (uintptr_t)start);
	assert_int_equal(stub.bytes, bytes);
}

static void stubs_are_told_apart(void **state)
{
	expect(blob.first_code, "vtable stub", blob.first_code, 28);
	expect(blob.first_code + 31, "vtable stub", blob.first_code, 32);
	expect(blob.second_code, "itable stub", blob.second_code, 98);
	expect(blob.second_code + 91, "itable stub", blob.second_code, 98);
}

static void no_stub(void **state)
{
	struct vtable_stub stub;

	assert_false(vtables_find((uintptr_t)blob.before + 30, (uintptr_t)&blob, &stub));
	blob.first.next = 8; /* is no code */
	assert_false(vtables_find((uintptr_t)blob.first_code, (uintptr_t)&blob, &stub));
	blob.first.next = 0;
	blob.first.is_vtable = 2;
	assert_false(vtables_find((uintptr_t)blob.first_code, (uintptr_t)&blob, &stub));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stubs_are_told_apart, setup),
		cmocka_unit_test_setup(no_stub, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
