/* SPDX-License-Identifier: MIT */
/* Strings of JVMs whose objects have their class in different places. The JVM is made up, in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/objects.c"

#define KLASS_BASE 0x700000000ull
#define KLASS_SHIFT 6
#define STRING_NUMBER 77u /* compressed address of the class of strings */
#define OTHER_NUMBER 78u
#define TEXT "http-nio-8080-exec-connection-17"

/* Which field holds an object's class; the flags of the JVM. */
static struct {
	const char *klass;
	bool narrow_flag, is_compact, has_name;
} jvm;

static uintptr_t thread_klass = KLASS_BASE, string_klass = KLASS_BASE + ((uintptr_t)STRING_NUMBER << KLASS_SHIFT);
static uintptr_t oop_base, klass_base = KLASS_BASE;
static uint32_t oop_shift, klass_shift = KLASS_SHIFT;

/* Room for both kinds of headers: 8 bytes, or 8 with 4 for the class. */
static struct {
	uint64_t words[8];
} string, array;

static const struct exported {
	const char *field;
	uintptr_t address;
} exports[] = {
	{VM_CLASS("Thread"), (uintptr_t)&thread_klass},
	{VM_CLASS("String"), (uintptr_t)&string_klass},
	{"_base", 0},
	{"_shift", 0},
};

static void fill_row(const struct vmstructs_row *row)
{
	bool of_oops = !strcmp(row->type, "CompressedOops");

	for (size_t i = 0; row->address && i < sizeof(exports) / sizeof(exports[0]); i++)
		if (!strcmp(row->field, exports[i].field))
			*row->address = exports[i].address;
	if (!strcmp(row->field, "_base"))
		*row->address = of_oops ? (uintptr_t)&oop_base : (uintptr_t)&klass_base;
	if (!strcmp(row->field, "_shift"))
		*row->address = of_oops ? (uintptr_t)&oop_shift : (uintptr_t)&klass_shift;
	if (!strcmp(row->type, "oopDesc") && jvm.klass && !strcmp(row->field, jvm.klass))
		*row->offset = (struct offset){true, 4, 8};
}

int vmstructs_read(const struct vmstructs_row *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fill_row(&wanted[i]);
	return 0;
}

size_t vmstructs_type_bytes(const char *type)
{
	return 0;
}

bool jvmflags_is_set(const char *name)
{
	return (jvm.narrow_flag && !strcmp(name, "UseCompressedClassPointers")) ||
	       (jvm.is_compact && !strcmp(name, "UseCompactObjectHeaders"));
}

bool fields_open(int version)
{
	return true;
}

bool fields_find(uintptr_t klass, const char *name, const char *signature, uint16_t *ret_offset)
{
	*ret_offset = !strcmp(name, "value") ? 16 : 24;
	return strcmp(name, "name") || jvm.has_name;
}

/* Makes a String with this class, and what it refers to. References are whole: UseCompressedOops is off. */
static void make_string(uint32_t klass)
{
	size_t length_at = jvm.is_compact ? 8 : 12, length = strlen(TEXT);

	memset(&string, 0, sizeof(string));
	memset(&array, 0, sizeof(array));
	string.words[0] = jvm.is_compact ? (uint64_t)klass << COMPACT_KLASS_SHIFT : 1;
	string.words[1] = klass;
	string.words[2] = (uintptr_t)&array;
	memcpy((char *)&array + length_at, &length, 4);
	memcpy((char *)&array + length_at + 4, TEXT, length);
	memory_renew();
}

static void open_jvm(const char *klass, bool narrow_flag, bool is_compact)
{
	(void)memory_open(getpid(), (uintptr_t)&string); /* no library, but memory of this process */
	jvm.klass = klass;
	jvm.narrow_flag = narrow_flag;
	jvm.is_compact = is_compact;
	jvm.has_name = true;
}

static void expect_text(int version)
{
	char text[OBJECTS_TEXT_BYTES];
	bool doubt = false;

	assert_true(objects_open(version));
	make_string(STRING_NUMBER);
	assert_int_equal(objects_learn(), 0);
	assert_true(objects_text((uintptr_t)&string, text, &doubt));
	assert_string_equal(text, TEXT);
	make_string(OTHER_NUMBER);
	assert_false(objects_text((uintptr_t)&string, text, &doubt));
}

static void class_of_a_flag(void **state)
{
	open_jvm("_metadata._klass", true, false);
	expect_text(26);
	open_jvm("_metadata._klass", false, true);
	expect_text(26);
}

/* JDK 27 exports the compressed class alone, and has no flag for it. */
static void class_always_compressed(void **state)
{
	open_jvm("_compressed_klass", false, false);
	expect_text(27);
	open_jvm("_compressed_klass", false, true);
	expect_text(27);
}

static void unknown_layouts_are_refused(void **state)
{
	open_jvm(NULL, true, false);
	assert_false(objects_open(28));
	open_jvm("_compressed_klass", true, false);
	jvm.has_name = false;
	assert_true(objects_open(28));
	assert_int_equal(objects_learn(), -ENOTSUP);
	thread_klass = 0; /* not loaded yet */
	memory_renew();
	assert_int_equal(objects_learn(), -EAGAIN);
	thread_klass = KLASS_BASE;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class_of_a_flag),
		cmocka_unit_test(class_always_compressed),
		cmocka_unit_test(unknown_layouts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
