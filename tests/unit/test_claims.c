/* SPDX-License-Identifier: MIT */
/* Agents may claim what can be, however many threads wait, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/counters.h"
#include "jvms/jvms.h"

#define INTERVAL 10000

static struct process process = {.pid = 1};
static const struct options options;
static struct jvms jvms = {.options = &options, .of.cpus = 2};
static struct agent agent = {.origin = {.process = &process}};

/* Returns how many samples of this weight the loader takes, of `count`. */
static unsigned int taken(enum duet_agent_event_kind kind, uint64_t weight, unsigned int count)
{
	struct duet_sample record = {.head.size = sizeof(record), .flags = DUET_SAMPLE_CALLED, .weight = weight};
	static union claimed_sample claimed;
	unsigned int result = 0;

	jvms.begun_ns = clock_monotonic_ns() - NS_PER_SEC;
	agent.claimed[0] = 0;
	agent.start.event_count = 1;
	agent.start.events[0] = (struct duet_agent_event){.kind = kind, .interval = INTERVAL};
	for (unsigned int i = 0; i < count; i++)
		result += !!claims_take(&jvms, &agent, &record, &claimed);
	return result;
}

static void any_number_of_threads_may_wait(void **state)
{
	loader_counters[DUET_LOADER_BAD_AGENT_RECORD] = 0;
	assert_int_equal(taken(DUET_AGENT_EVENT_LOCK, NS_PER_SEC, 10000), 10000);
	assert_int_equal(taken(DUET_AGENT_EVENT_WAIT, NS_PER_SEC, 10000), 10000);
	assert_int_equal(taken(DUET_AGENT_EVENT_NATIVELOCK, NS_PER_SEC, 10000), 10000);
	assert_int_equal(loader_counters[DUET_LOADER_BAD_AGENT_RECORD], 0);
}

static void other_sums_are_bounded_by_time(void **state)
{
	loader_counters[DUET_LOADER_BAD_AGENT_RECORD] = 0;
	assert_in_range(taken(DUET_AGENT_EVENT_GC, NS_PER_SEC, 10000), 1, 1000);
	assert_int_equal(taken(DUET_AGENT_EVENT_LOCK, INTERVAL - 1, 1), 0);
	assert_int_equal(taken(DUET_AGENT_EVENT_LOCK, UINT64_MAX, 1), 0);
	assert_true(loader_counters[DUET_LOADER_BAD_AGENT_RECORD] > 9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_threads_may_wait),
		cmocka_unit_test(other_sums_are_bounded_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
