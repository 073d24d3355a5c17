/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/class_name.h"

static void expect(const char *signature, const char *name)
{
	struct buf text;

	buf_init(&text);
	class_name_add(&text, signature, strlen(signature));
	assert_string_equal(text.data, name);
	buf_release(&text);
}

static void signatures_become_names(void **state)
{
	expect("Ljava/lang/String;", "java.lang.String");
	expect("[Ljava/lang/Object;", "java.lang.Object[]");
	expect("[[Ljava/util/Map$Entry;", "java.util.Map$Entry[][]");
	expect("[Z", "boolean[]");
	expect("[B", "byte[]");
	expect("[C", "char[]");
	expect("[S", "short[]");
	expect("[[I", "int[][]");
	expect("[J", "long[]");
	expect("[F", "float[]");
	expect("[[[D", "double[][][]");
	expect("La/Main$$Lambda.0x00007f;", "a.Main$$Lambda.0x00007f");
	expect("La/Main$$Lambda+0x00007f;", "a.Main$$Lambda.0x00007f");
	expect("La+b/C+0x;", "a+b.C+0x");
}

static void what_is_none_is_kept(void **state)
{
	struct buf text;
	char deep[300];

	expect("", "");
	expect("I", "I");
	expect("[", "[]");
	expect("[X", "X[]");
	expect("[II", "II[]");
	expect("L", "L");
	expect("L;", "");
	expect("La/b", "La.b");
	memset(deep, '[', sizeof(deep)); /* more than an array can have */
	buf_init(&text);
	class_name_add(&text, deep, sizeof(deep));
	assert_int_equal(text.len, 300 - 255 + 2 * 255);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_become_names),
		cmocka_unit_test(what_is_none_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
