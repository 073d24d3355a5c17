/* SPDX-License-Identifier: MIT */
/* Facts of a process from /proc are read again when they are old, not at each sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "subject/owners.h"

static void an_old_membership_is_read_once(void **state)
{
	struct process_table processes;
	struct profile profile;
	struct owners owners;
	struct process *process;
	uint64_t before_ns;
	uint32_t row;

	(void)state;
	process_table_init(&processes);
	assert_int_equal(profile_init(&profile), 0);
	owners_open(&owners, &profile, false);
	process = process_get(&processes, getpid(), 0);
	assert_non_null(process);
	row = owners_row(&owners, process, NULL);
	before_ns = clock_monotonic_ns();
	subject_of(process)->owner_ns = before_ns - 10 * NS_PER_SEC;
	assert_int_equal(owners_row(&owners, process, NULL), row);
	assert_true(subject_of(process)->owner_ns >= before_ns);
	before_ns = subject_of(process)->owner_ns;
	assert_int_equal(owners_row(&owners, process, NULL), row);
	assert_int_equal(subject_of(process)->owner_ns, before_ns);
	owners_release(&owners);
	profile_release(&profile);
	process_table_release(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_membership_is_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
