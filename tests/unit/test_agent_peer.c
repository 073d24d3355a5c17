/* SPDX-License-Identifier: MIT */
/* Which START messages the agent accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "peer/peer.c"

struct agent_jvm jvm;

void jvm_property(const char *name, char *text, size_t size)
{
	snprintf(text, size, "%s", name);
}

const struct agent_engine *engine_find(uint32_t id)
{
	static const struct agent_engine plain, timers = {.standalone = true};
	static const struct agent_engine perf = {.standalone = true, .counts = true};

	return id >= DUET_ENGINE_ID_MAX	  ? NULL
	       : id == DUET_ENGINE_CTIMER ? &timers
	       : id == DUET_ENGINE_PERF	  ? &perf
					  : &plain;
}

static struct duet_message_start sound(void)
{
	return (struct duet_message_start){
		.head = {sizeof(struct duet_message_start), DUET_MESSAGE_START, DUET_AGENT_VERSION},
		.engine = DUET_ENGINE_CTIMER,
		.java_depth = DUET_JAVA_DEPTH,
		.event_count = 1,
		.events = {{.interval = 1000, .kind = DUET_AGENT_EVENT_CLOCK, .index = 3}},
	};
}

static void the_event_is_found(void **state)
{
	struct duet_message_start start = sound();

	assert_true(start_is_sound(&start));
	assert_ptr_equal(peer_find_event(&start, DUET_AGENT_EVENT_CLOCK), &start.events[0]);
	start.event_count = 0;
	assert_null(peer_find_event(&start, DUET_AGENT_EVENT_CLOCK));
}

static void timers_need_a_clock(void **state)
{
	struct duet_message_start start = sound();

	start.event_count = 0;
	assert_false(start_is_sound(&start));
	start.engine = DUET_ENGINE_BPF;
	assert_true(start_is_sound(&start));
	start.engine = DUET_ENGINE_NONE;
	assert_true(start_is_sound(&start));
	start.engine = DUET_ENGINE_ID_MAX;
	assert_false(start_is_sound(&start));
}

static void perf_counts_page_faults_too(void **state)
{
	struct duet_message_start start = sound();

	start.events[0].kind = DUET_AGENT_EVENT_PAGE_FAULTS;
	assert_ptr_equal(peer_find_ticks(&start), &start.events[0]);
	assert_false(start_is_sound(&start));
	start.engine = DUET_ENGINE_PERF;
	assert_true(start_is_sound(&start));
	start.events[0].kind = DUET_AGENT_EVENT_ALLOC;
	assert_null(peer_find_ticks(&start));
	assert_false(start_is_sound(&start));
}

static void bad_events_are_refused(void **state)
{
	const struct duet_agent_event bad[] = {
		{.interval = 0, .kind = DUET_AGENT_EVENT_CLOCK},
		{.interval = 1, .kind = DUET_AGENT_EVENT_NONE},
		{.interval = 1, .kind = DUET_AGENT_EVENT_KIND_MAX},
		{.interval = 1, .kind = DUET_AGENT_EVENT_CLOCK, .index = DUET_MAX_EVENTS},
	};
	struct duet_message_start start = sound();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start.events[0] = bad[i];
		assert_false(start_is_sound(&start));
	}
	start = sound();
	start.events[start.event_count++] = start.events[0]; /* the same kind again */
	assert_false(start_is_sound(&start));
	start = sound();
	start.event_count = DUET_MAX_EVENTS + 1;
	assert_false(start_is_sound(&start));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_event_is_found),
		cmocka_unit_test(timers_need_a_clock),
		cmocka_unit_test(perf_counts_page_faults_too),
		cmocka_unit_test(bad_events_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
