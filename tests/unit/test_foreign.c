/* SPDX-License-Identifier: MIT */
/* Memory that is read as that of a sleeping thread's process: here it is this process, and no helper is started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/foreign.h"

#define PAGE 4096

/* Three pages, of which the last cannot be read. */
static unsigned char *make_pages(void)
{
	unsigned char *at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	for (size_t i = 0; i < 2 * PAGE; i++)
		at[i] = (unsigned char)(i * 7 + i / PAGE);
	assert_int_equal(mprotect(at + 2 * PAGE, PAGE, PROT_NONE), 0);
	return at;
}

static void expect_bytes(struct foreign *foreign, const unsigned char *at, size_t bytes)
{
	unsigned char got[64];

	assert_int_equal(foreign_read(foreign, got, bytes, (uintptr_t)at), 0);
	assert_memory_equal(got, at, bytes);
}

static void pages_are_read_and_kept(void **state)
{
	unsigned char *at = make_pages(), before = at[10], got;
	struct foreign foreign = {0};

	(void)state;
	foreign_open(&foreign, getpid());
	expect_bytes(&foreign, at + 10, 8);
	expect_bytes(&foreign, at + PAGE - 3, 8);
	at[10]++;
	assert_int_equal(foreign_read(&foreign, &got, 1, (uintptr_t)at + 10), 0);
	assert_int_equal(got, before);
	assert_int_equal(foreign_read(&foreign, &got, 1, (uintptr_t)at + 2 * PAGE), -1);
	assert_int_equal(foreign_read(&foreign, &got, 1, UINT64_MAX), -1);
	foreign_close(&foreign);
	munmap(at, 3 * PAGE);
}

static void a_stack_is_read_to_its_end(void **state)
{
	unsigned char *at = make_pages(), got[16];
	const uint64_t stacks[] = {(uintptr_t)at + 100, (uintptr_t)at + 2 * PAGE - 200, (uintptr_t)at + 2 * PAGE};
	struct foreign foreign = {0};

	(void)state;
	foreign_open(&foreign, getpid());
	foreign_read_stacks(&foreign, stacks, 3);
	assert_int_equal(foreign.stack_count, 3);
	expect_bytes(&foreign, at + 100, 16);
	foreign.stack = 1;
	expect_bytes(&foreign, at + 2 * PAGE - 16, 16);
	assert_int_equal(foreign_read(&foreign, got, 16, (uintptr_t)at + 2 * PAGE - 8), -1);
	foreign.stack = 2;
	assert_int_equal(foreign_read(&foreign, got, 8, (uintptr_t)at + 2 * PAGE), -1);
	foreign_close(&foreign);
	munmap(at, 3 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_read_and_kept),
		cmocka_unit_test(a_stack_is_read_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
