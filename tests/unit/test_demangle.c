/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sym/demangle.h"

static void assert_demangles(const char *name, const char *expected)
{
	struct buf out;

	buf_init(&out);
	buf_add_str(&out, ">");
	assert_int_equal(demangle(name, &out), expected != NULL);
	assert_string_equal(out.data + 1, expected ? expected : "");
	buf_release(&out);
}

static void test_cplus_without_parameters(void **state)
{
	assert_demangles("_ZN10JavaThread3runEv", "JavaThread::run");
	assert_demangles("_ZN9JavaCalls11call_helperEP9JavaValueRK12methodHandleP17JavaCallArgumentsP10JavaThread",
			 "JavaCalls::call_helper");
	assert_demangles("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back");
	assert_demangles("_ZN3FooD1Ev", "Foo::~Foo");
}

static void test_rust_without_hash(void **state)
{
	assert_demangles("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	assert_demangles("_RNvC6_123foo3bar", "123foo::bar");
}

/* These look as if they bound 62^3 lifetimes and more: the hashes of crates, and identifiers. */
static void test_rust_with_a_g(void **state)
{
	assert_demangles("_RNvCsdKmGX6TnrLs_1a4main", "a::main");
	assert_demangles("_RNvNtCsFGGGabc_1a12Glyph_GG_Baz4main", "a::Glyph_GG_Baz::main");
	assert_demangles("_RINvCsdKmGX6TnrLs_1a5applyNCNvB2_4main0EB2_", "a::apply::<a::main::{closure#0}>");
}

static void test_linkage_entries_stay_so(void **state)
{
	assert_demangles("_ZN10JavaThread3runEv@plt", "JavaThread::run@plt");
	assert_demangles("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE@plt", "core::fmt::Formatter::pad@plt");
	assert_demangles("memcpy@plt", NULL);
	assert_demangles("_exit@plt", NULL);
	assert_demangles("@plt", NULL);
}

static void test_others_stay(void **state)
{
	char longest[DEMANGLE_MAX_INPUT + 100];

	assert_demangles("", NULL);
	assert_demangles("_", NULL);
	assert_demangles("main", NULL);
	assert_demangles("_Zzzz", NULL);
	assert_demangles("_R", NULL);
	assert_demangles("_RNvC99999999999foo", NULL);
	memset(longest, 'P', sizeof(longest));
	memcpy(longest, "_Z1f", 4);
	longest[sizeof(longest) - 1] = '\0';
	assert_demangles(longest, NULL);
	longest[DEMANGLE_MAX_INPUT - 1] = '\0'; /* nested deeper than the demangler may recurse, and no end */
	assert_demangles(longest, NULL);
}

/* The path of an implementation is parsed but not printed, and so are the 62^6 lifetimes of its binder. */
static void test_lifetimes_without_end(void **state)
{
	assert_demangles("_RNvMC0FG_RL0_hEu3baz", "<for<'a> fn(&'a u8)>::baz");
	assert_demangles("_RNvXC0FGzzzzzz_Euu1a", NULL);
	assert_demangles("_RC0YFGzzzzzzz_", NULL);
}

/* Each template argument is the one before it, twice: without a limit the text has 2^60 times `int`. */
static void test_explosion_is_cut(void **state)
{
	char name[1024] = "_Z1fI1AIiiE";
	struct buf out;

	for (int i = 0; i < 32; i++) {
		char step[32];
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

		if (i == 0)
			snprintf(step, sizeof(step), "1BIS1_S1_E");
		else
			snprintf(step, sizeof(step), "S2_IS%c_S%c_E", digits[i + 2], digits[i + 2]);
		strcat(name, step);
	}
	strcat(name, "Evv");
	buf_init(&out);
	assert_true(demangle(name, &out));
	assert_int_equal(out.len, DEMANGLE_MAX_OUTPUT);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cplus_without_parameters),
		cmocka_unit_test(test_rust_without_hash),
		cmocka_unit_test(test_rust_with_a_g),
		cmocka_unit_test(test_linkage_entries_stay_so),
		cmocka_unit_test(test_others_stay),
		cmocka_unit_test(test_lifetimes_without_end),
		cmocka_unit_test(test_explosion_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
