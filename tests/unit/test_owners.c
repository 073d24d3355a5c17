/* SPDX-License-Identifier: MIT */
/* What is known of a process from /proc: when it is read, and what is left of it when the process has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "subject/program.h"

static void an_old_membership_is_read_once(void **state)
{
	struct process_table processes;
	struct profile profile;
	struct owners owners;
	struct process *process;
	uint64_t before_ns;
	uint32_t row;

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

/* A process that maps a libjvm.so and has no program of Java is asked for one at most every 100 ms, then rarer. */
static void a_nameless_process_is_asked_rarely(void **state)
{
	struct mapping libjvm = {.start = 1 << 12, .end = 2 << 12, .path = (char *)"/nowhere/libjvm.so"};
	struct process_table processes;
	struct profile profile;
	struct owners owners;
	struct process *process;
	uint64_t first_ns, asks = 0;

	process_table_init(&processes);
	assert_int_equal(profile_init(&profile), 0);
	owners_open(&owners, &profile, false);
	process = process_get(&processes, getpid(), 0);
	assert_int_equal(maps_add(&process->maps, &libjvm), 0);
	owners_row(&owners, process, NULL);
	first_ns = subject_of(process)->ask_ns;
	assert_true(first_ns);
	for (uint64_t before_ns = first_ns; asks < 2; asks += subject_of(process)->ask_ns != before_ns) {
		before_ns = subject_of(process)->ask_ns;
		process->maps_version++;
		owners_row(&owners, process, NULL);
	}
	assert_true(clock_monotonic_ns() - first_ns >= 200 * NS_PER_MS);
	owners_release(&owners);
	profile_release(&profile);
	process_table_release(&processes);
}

static void end(struct process_table *processes, struct process *process)
{
	pid_t child = process->pid;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	process_exit(process_find(processes, child));
}

/* An agent's samples have no cgroup. They may be decided when their process has ended, and /proc has nothing of it. */
static void a_process_that_has_ended(void **state)
{
	struct process_table processes;
	struct profile profile;
	struct owners owners;
	struct process *process;
	uint64_t start_ticks;
	const char *label;
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	process_table_init(&processes);
	assert_int_equal(profile_init(&profile), 0);
	owners_open(&owners, &profile, false);
	assert_int_equal(process_read_start_ticks(child, &start_ticks), 0);
	process = process_get(&processes, child, start_ticks);
	assert_non_null(process);
	owners_note(&owners, process);
	end(&processes, process);
	label = intern_text(&profile.strings, profile.owners.items[owners_row(&owners, process, NULL)].container);
	if (owners.containers.tree.fd >= 0) /* cgroup v2 is mounted */
		assert_string_not_equal(label, "[unknown cgroup]");
	owners_release(&owners);
	profile_release(&profile);
	process_table_release(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_old_membership_is_read_once),
		cmocka_unit_test(a_nameless_process_is_asked_rarely),
		cmocka_unit_test(a_process_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
