/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/vm_flags.h"

static void check(const char *options, size_t len, char separator, const char *want)
{
	char *exact = malloc(len ? len : 1);
	struct vm_flags flags = {0};
	struct buf text;

	assert_non_null(exact);
	memcpy(exact, options, len);
	buf_init(&text);
	assert_int_equal(vm_flags_add(&flags, exact, len, separator), 0);
	vm_flags_print(&flags, &text);
	assert_string_equal(text.data, want);
	buf_release(&text);
	vm_flags_release(&flags);
	free(exact);
}

static void expect(const char *options, const char *want)
{
	check(options, strlen(options), ' ', want);
}

static void switches_and_numbers(void **state)
{
	static const char arguments[] = "java\0-Xmx1g\0-Da=b -XX:+NoFlag\0-XX:-UseG1GC\0-cp\0x";

	expect("-XX:+UseG1GC -XX:-UsePerfData -XX:ParallelGCThreads=4",
	       "ParallelGCThreads=4\nUseG1GC=true\nUsePerfData=false\n");
	expect("-XX:MaxMetaspaceSize=256m -XX:G1HeapRegionSize=2M -XX:LargePageSizeInBytes=0x200000",
	       "G1HeapRegionSize=2097152\nLargePageSizeInBytes=2097152\nMaxMetaspaceSize=268435456\n");
	expect("-XX:MaxRAMPercentage=75.0 -XX:hashCode=-1", "MaxRAMPercentage=75.0\nhashCode=-1\n");
	expect("-Xms64m -Xmx512m -Xmn32m", "InitialHeapSize=67108864\nMaxHeapSize=536870912\nMaxNewSize=33554432\n"
					   "NewSize=33554432\n");
	check(arguments, sizeof(arguments), '\0', "MaxHeapSize=1073741824\nUseG1GC=false\n");
}

static void the_last_counts(void **state)
{
	expect("-XX:+UseG1GC -Xmx1g -XX:-UseG1GC -XX:MaxHeapSize=1", "MaxHeapSize=1\nUseG1GC=false\n");
}

static void what_is_none(void **state)
{
	expect("", "\n");
	expect("-server -Dx=-XX:+A -Xint -Xmx -Xmxlarge -agentlib:jdwp=a", "\n");
	expect("-XX: -XX:+ -XX:A -XX:A= -XX:=1 -XX:+A\"b -XX:A;b=1 -XX:+ä", "\n");
	expect("-XX:OnError=secret -XX:HeapDumpPath=/x -XX:A=1mm -XX:A=99999999999999999999 -XX:A=99999999999999999t",
	       "\n");
	expect("-XX:A=1m2 -XX:A=nan -XX:A=inf -XX:A=0x", "\n");
}

static void long_ones(void **state)
{
	struct buf options, text;
	struct vm_flags flags = {0};

	buf_init(&options);
	buf_init(&text);
	buf_printf(&options, "-XX:+%0*d ", VM_FLAG_NAME_MAX + 1, 0);
	buf_printf(&options, "-XX:+%0*d ", 1000, 0);
	buf_printf(&options, "-XX:A=1.%0*d ", 40, 0);
	for (int i = 0; i < 2 * VM_FLAGS_MAX; i++)
		buf_printf(&options, "-XX:+Flag%d ", i);
	assert_int_equal(vm_flags_add(&flags, options.data, options.len, ' '), 0);
	assert_int_equal(flags.list.len, VM_FLAGS_MAX);
	for (size_t i = 1; i < flags.list.len; i++)
		assert_true(strcmp(flags.list.items[i - 1].name, flags.list.items[i].name) < 0);
	vm_flags_release(&flags);
	buf_release(&options);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_and_numbers),
		cmocka_unit_test(the_last_counts),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(long_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
