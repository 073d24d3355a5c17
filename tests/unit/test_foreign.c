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

#include "collect/sleepers/sleeper_walk.h"

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

	foreign_open(&foreign, CHARGE_OWN(getpid()));
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

	foreign_open(&foreign, CHARGE_OWN(getpid()));
	assert_int_equal(foreign_read_stacks(&foreign, stacks, 3), 3);
	expect_bytes(&foreign, at + 100, 16);
	foreign.stack = 1;
	expect_bytes(&foreign, at + 2 * PAGE - 16, 16);
	assert_int_equal(foreign_read(&foreign, got, 16, (uintptr_t)at + 2 * PAGE - 8), -1);
	foreign.stack = 2;
	assert_int_equal(foreign_read(&foreign, got, 8, (uintptr_t)at + 2 * PAGE), -1);
	foreign_close(&foreign);
	munmap(at, 3 * PAGE);
}

static void stacks_after_one_that_cannot_be_read_are_read(void **state)
{
	unsigned char *at = make_pages(), got[8];
	const uint64_t stacks[] = {(uintptr_t)at + 2 * PAGE, (uintptr_t)at + 64, (uintptr_t)at + 2 * PAGE - 32,
				   (uintptr_t)at + PAGE - 64};
	struct foreign foreign = {0};

	foreign_open(&foreign, CHARGE_OWN(getpid()));
	assert_int_equal(foreign_read_stacks(&foreign, stacks, 4), 4);
	assert_int_equal(foreign_read(&foreign, got, 8, stacks[0]), -1);
	for (foreign.stack = 1; foreign.stack < 4; foreign.stack++)
		expect_bytes(&foreign, at + (stacks[foreign.stack] - (uintptr_t)at), 32);
	assert_int_equal(foreign.reads_left, 4095); /* the single page that was asked for could not be read */
	foreign_close(&foreign);
	munmap(at, 3 * PAGE);
}

/* Most stacks are read as far as the deepest one before was needed, and a deeper one is read all the same. */
static void as_much_is_read_as_stacks_need(void **state)
{
	unsigned char *at = make_pages();
	uint64_t stacks[FOREIGN_STACKS];
	struct foreign foreign = {0};
	size_t few;

	for (size_t i = 0; i < FOREIGN_STACKS; i++)
		stacks[i] = (uintptr_t)at + 8 * i;
	foreign_open(&foreign, CHARGE_OWN(getpid()));
	few = foreign_read_stacks(&foreign, stacks, FOREIGN_STACKS);
	assert_in_range(few, 1, 32);
	for (foreign.stack = 0; foreign.stack < few; foreign.stack++)
		expect_bytes(&foreign, at + 8 * foreign.stack + 400, 16);
	assert_in_range(foreign_read_stacks(&foreign, stacks, FOREIGN_STACKS), 100, FOREIGN_STACKS);
	foreign.stack = 3;
	expect_bytes(&foreign, at + 8 * 3 + 500, 8);
	assert_int_equal(foreign.reads_left, 4096);
	expect_bytes(&foreign, at + 8 * 3 + 3000, 64);
	assert_int_equal(foreign.reads_left, 4095);
	assert_int_equal(foreign_read_stacks(&foreign, stacks, FOREIGN_STACKS), few);
	foreign_close(&foreign);
	munmap(at, 3 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_read_and_kept),
		cmocka_unit_test(a_stack_is_read_to_its_end),
		cmocka_unit_test(stacks_after_one_that_cannot_be_read_are_read),
		cmocka_unit_test(as_much_is_read_as_stacks_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
