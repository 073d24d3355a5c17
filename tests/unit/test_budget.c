/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/records/agent_ring.h"
#include "collect/tables/unwind_tables.h"
#include "jvms/agents.h"
#include "limits/budget.h"

#define MB ((size_t)1 << 20)

/* Returns the bytes of the files that are made for it. */
static size_t made_bytes(const struct agent_start *start)
{
	struct unwind_tables *tables = NULL;
	struct agent_ring *ring;
	size_t bytes;

	assert_int_equal(agent_ring_new(&ring, start->sample_lane_bytes, start->metadata_lane_bytes), 0);
	bytes = agent_ring_bytes(ring);
	agent_ring_free(ring);
	if (!start->tables_bytes)
		return bytes;
	assert_int_equal(unwind_tables_open_file(&tables, start->tables_bytes), 0);
	bytes += unwind_tables_bytes(tables);
	unwind_tables_close(tables);
	return bytes;
}

static void what_is_promised_is_what_is_made(void **state)
{
	static const size_t limits[] = {1024 * MB, 64 * MB};
	static struct budget budget;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		for (size_t lane = MB; lane < 10 * MB; lane += 777777) {
			struct agent_start start = {.java_depth = DUET_JAVA_DEPTH,
						    .sample_lane_bytes = lane,
						    .metadata_lane_bytes = 4 * MB,
						    .tables_bytes = i % 2 ? 16 * MB : 0};
			struct agent agent = {0};

			budget.pool = (struct pool){.max_bytes = limits[i], .heap_max = limits[i]};
			assert_true(budget_take_ring(&budget, &start));
			assert_int_equal(budget.pool.promised_bytes, made_bytes(&start));
			agent.start = start;
			budget_give_ring(&budget, &agent);
			assert_int_equal(budget.pool.promised_bytes, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_promised_is_what_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
