/* SPDX-License-Identifier: MIT */
/* Names of classes as records have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample/attributes.c"

static void names_are_padded_and_cut(void **state)
{
	char name[2 * DUET_MAX_CLASS_BYTES];
	struct class_attribute attribute;

	assert_int_equal(class_attribute_set(&attribute, "[B"), 8 + 8);
	assert_int_equal(attribute.head.bytes, 2);
	assert_memory_equal(attribute.name, "[B\0\0\0\0\0\0", 8);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(class_attribute_set(&attribute, name), sizeof(attribute));
	assert_true(sizeof(attribute) <= DUET_MAX_ATTRIBUTE_BYTES);
	assert_int_equal(class_attribute_set(&attribute, NULL), 0);
	assert_int_equal(class_attribute_set(&attribute, ""), 0);
}

static void states_are_cut(void **state)
{
	struct state_attribute attribute;

	assert_int_equal(state_attribute_set(&attribute, "at_it"), 8 + 8);
	assert_int_equal(attribute.head.type, DUET_ATTRIBUTE_STATE);
	assert_memory_equal(attribute.text, "at_it\0\0\0", 8);
	assert_int_equal(state_attribute_set(&attribute, "a state whose name is longer than a name may be"),
			 sizeof(attribute));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_padded_and_cut),
		cmocka_unit_test(states_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
