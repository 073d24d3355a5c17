/* SPDX-License-Identifier: MIT */
/* CPUs that go and come: folders that the kernel removes, and makes anew. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/kernel/cpus.h"

static char root[] = "/tmp/duet-cpus.XXXXXX";

static const char *below(const char *name)
{
	static char paths[2][64];
	static int turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static void add(const char *name)
{
	assert_int_equal(mkdir(below(name), 0700), 0);
}

static void drop(const char *name)
{
	assert_int_equal(rmdir(below(name)), 0);
}

static void note(void *context, int cpu)
{
	*(unsigned int *)context |= 1u << cpu;
}

static void expect(struct cpus *cpus, int count, unsigned int which)
{
	unsigned int seen = 0;

	assert_int_equal(cpus_look(cpus, note, &seen), count);
	assert_int_equal(seen, which);
}

static void come_and_go(void **state)
{
	struct cpus cpus;

	add("cpu0");
	add("cpu1");
	add("cpu2");
	add("cpu0/topology");
	add("cpu1/topology");
	cpus_open(&cpus, root, 4);
	expect(&cpus, 0, 0);
	drop("cpu1/topology");
	expect(&cpus, 0, 0);
	add("cpu1/topology");
	add("cpu2/topology");
	expect(&cpus, 2, 1u << 1 | 1u << 2);
	expect(&cpus, 0, 0);
	cpus_release(&cpus);
}

/* The CPU was away between two looks. */
static void away_for_a_moment(void **state)
{
	struct cpus cpus;

	cpus_open(&cpus, root, 2);
	add("other"); /* exists at the same time, so it has another number */
	drop("cpu1/topology");
	assert_int_equal(rename(below("other"), below("cpu1/topology")), 0);
	expect(&cpus, 1, 1u << 1);
	cpus_release(&cpus);
}

static void without_a_folder(void **state)
{
	struct cpus cpus;

	cpus_open(&cpus, below("none"), 2);
	expect(&cpus, 0, 0);
	cpus_release(&cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(away_for_a_moment),
		cmocka_unit_test(without_a_folder),
	};

	if (!mkdtemp(root))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
