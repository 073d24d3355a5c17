/* SPDX-License-Identifier: MIT */
/* Memory for handlers: zeroed, and never in huge pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/pages.c"

#define BYTES (4u << 20)

/* Returns 1 if the mapping with `address` refuses huge pages. */
static int refuses_huge_pages(const void *address)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long low, high;
	char line[4096];
	int inside = 0, refuses = 0;

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			inside = (uintptr_t)address >= low && (uintptr_t)address < high;
		if (inside && !strncmp(line, "VmFlags:", 8))
			refuses = strstr(line, " nh") != NULL;
	}
	if (smaps)
		fclose(smaps);
	return refuses;
}

static void test_zeroed_and_small(void **state)
{
	unsigned char *pages = pages_new(BYTES);

	assert_non_null(pages);
	assert_int_equal(pages[0] | pages[BYTES / 2] | pages[BYTES - 1], 0);
	if (!access("/sys/kernel/mm/transparent_hugepage", F_OK))
		assert_true(refuses_huge_pages(pages + BYTES / 2));
	pages_free(pages, BYTES);
	pages_free(NULL, BYTES);
}

static void test_too_much(void **state)
{
	assert_null(pages_new(SIZE_MAX / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zeroed_and_small),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
