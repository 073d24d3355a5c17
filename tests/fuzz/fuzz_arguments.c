/* SPDX-License-Identifier: MIT */
/*
 * A JVM's command line, and the same bytes as its counters and as a properties file: the program that it runs, and its
 * options.
 */
#include "fuzz.h"
#include "runtime/application.h"
#include "runtime/vm_flags.h"

static void check_within(const char *part, const char *bytes, size_t size)
{
	if (!part)
		return;
	FUZZ_CHECK(part >= bytes && part < bytes + size);
	FUZZ_CHECK(memchr(part, '\0', (size_t)(bytes + size - part)));
}

static void check_flags(const char *bytes, size_t size, char separator)
{
	struct vm_flags flags = {0};
	struct buf text;

	buf_init(&text);
	FUZZ_CHECK(!vm_flags_add(&flags, bytes, size, separator) && flags.list.len <= VM_FLAGS_MAX);
	vm_flags_print(&flags, &text);
	FUZZ_CHECK(text.len && text.data[text.len - 1] == '\n');
	buf_release(&text);
	vm_flags_release(&flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct spark spark;
	struct buf name;

	buf_init(&name);
	check_within(application_find(bytes, size), bytes, size);
	if (!application_from_arguments(bytes, size, &name))
		FUZZ_CHECK(name.len > strlen(APPLICATION_PREFIX));
	spark_from_arguments(bytes, size, &spark);
	check_within(spark.name, bytes, size);
	check_within(spark.properties, bytes, size);
	check_within(spark.id, bytes, size);
	buf_clear(&name);
	FUZZ_CHECK(!spark_from_properties(bytes, size, &name) == (name.len > 0));
	FUZZ_CHECK(name.len <= size);
	check_flags(bytes, size, ' ');
	check_flags(bytes, size, '\0');
	buf_release(&name);
	return 0;
}
