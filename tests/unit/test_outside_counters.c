/* SPDX-License-Identifier: MIT */
/* Counters on the C heap are found by libjvm's variables. Here image and heap are made up, in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/counters.c"

#define NAME "java.cls.unloadedClasses"

static struct {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	uintptr_t functions[4]; /* a table of virtual functions */
	uintptr_t variables[2 * CHUNK_WORDS];
} image;
static struct {
	int32_t bytes, name, vector_length;
	uint8_t type, flags, units, variability;
	int32_t value_at;
	char text[28];
	uint64_t value;
} entry;
static struct {
	uintptr_t words[OBJECT_WORDS];
} object;

static int setup(void **state)
{
	memset(&image, 0, sizeof(image));
	image.head = (Elf64_Ehdr){
		.e_phoff = offsetof(typeof(image), segments), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2};
	image.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_memsz = offsetof(typeof(image), variables)};
	image.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
					 .p_flags = PF_R | PF_W,
					 .p_vaddr = offsetof(typeof(image), variables),
					 .p_memsz = sizeof(image.variables)};
	memset(&entry, 0, sizeof(entry));
	entry.bytes = sizeof(entry);
	entry.name = offsetof(typeof(entry), text);
	entry.type = 'J';
	entry.value_at = offsetof(typeof(entry), value);
	strcpy(entry.text, NAME);
	object.words[0] = (uintptr_t)&image.functions[2];
	object.words[4] = (uintptr_t)&entry;
	image.variables[CHUNK_WORDS + 7] = (uintptr_t)&object;
	(void)memory_open(getpid(), (uintptr_t)&image); /* it has no symbols */
	return 0;
}

static uintptr_t find(void)
{
	memory_renew();
	return counters_find((uintptr_t)&image, NAME);
}

static void finds_by_variable(void **state)
{
	assert_int_equal(find(), (uintptr_t)&entry.value);
	assert_int_equal(counters_find((uintptr_t)&image, "java.cls.loadedClasses"), 0);
}

static void takes_only_objects_of_libjvm(void **state)
{
	object.words[0] = (uintptr_t)&object;
	assert_int_equal(find(), 0);
}

static void searches_only_variables(void **state)
{
	image.segments[1].p_flags = PF_R;
	assert_int_equal(find(), 0);
}

static void ends_with_made_up_headers(void **state)
{
	image.segments[1].p_memsz = UINT64_MAX;
	assert_int_equal(find(), 0);
	setup(NULL);
	image.segments[1].p_vaddr = UINT64_MAX - 64;
	(void)find();
	setup(NULL);
	image.head.e_phnum = EXPORTS_MAX_SEGMENTS + 1;
	assert_int_equal(find(), 0);
	setup(NULL);
	image.head.e_phoff = UINT64_MAX - 8;
	assert_int_equal(find(), 0);
	setup(NULL);
	entry.value_at = sizeof(entry) - 7;
	assert_int_equal(find(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(finds_by_variable, setup),
		cmocka_unit_test_setup(takes_only_objects_of_libjvm, setup),
		cmocka_unit_test_setup(searches_only_variables, setup),
		cmocka_unit_test_setup(ends_with_made_up_headers, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
