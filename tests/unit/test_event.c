/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/engines.h"
#include "event/event.h"

static void cpu_is_the_default(void **state)
{
	(void)state;
	assert_ptr_equal(event_by_name("cpu"), event_table[0]);
	assert_int_equal(event_table[0]->default_interval, 10 * NS_PER_MS);
}

static void names_match_whole(void **state)
{
	(void)state;
	assert_null(event_by_name(""));
	assert_null(event_by_name("cp"));
	assert_null(event_by_name("cpus"));
	assert_null(event_by_name("CPU"));
}

static void rows_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; event_table[i]; i++) {
		const struct event *event = event_table[i];

		assert_ptr_equal(event_by_name(event->name), event);
		assert_non_null(event->help);
		assert_true(event->least_interval > 0);
		assert_in_range(event->default_interval, event->least_interval, event->most_interval);
		assert_true(event->most_interval <= UINT32_MAX || event->perf.is_clock); /* duet_event.gap */
		if (event->program != DUET_PROGRAM_NONE) /* the agent weighs its own events */
			assert_int_equal(event->perf.is_clock || event->is_chosen, event->unit == EVENT_NS);
		assert_true(event->program == DUET_PROGRAM_PERF || !event->perf.type);
		assert_null(strpbrk(event->name, ",="));
	}
}

static void expect_list(const char *text, const char *expected)
{
	struct event_list list = {.len = 0};
	struct buf why, said;

	buf_init(&why);
	buf_init(&said);
	assert_int_equal(event_list_parse(&list, text, &why), 0);
	event_list_text(&list, 1, &said);
	assert_string_equal(said.data, expected);
	buf_release(&said);
	buf_release(&why);
}

static void lists_are_read(void **state)
{
	(void)state;
	expect_list("cpu", "cpu every 10 ms");
	expect_list("cpu=500us", "cpu every 500 us");
	expect_list("cpu=1s,page-faults=100", "cpu every 1 s, page-faults every 100");
	expect_list("syscalls=1000,page-faults", "syscalls every 1000, page-faults every 1");
	expect_list("cpu,offcpu=300us", "cpu every 10 ms, offcpu every 300 us");
	expect_list("wall=1ms,alloc", "wall every 1 ms, alloc every 512 KiB");
	expect_list("context-switches,cpu=15500", "context-switches every 1, cpu every 15500 ns");
}

static void expect_refusal(const char *text, const char *expected)
{
	struct event_list list = {.len = 7};
	struct buf why;

	buf_init(&why);
	assert_int_equal(event_list_parse(&list, text, &why), -EINVAL);
	assert_non_null(strstr(why.data, expected));
	assert_int_equal(list.len, 7);
	buf_release(&why);
}

static void what_makes_no_sense_is_refused(void **state)
{
	char name[200] = "";

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	expect_refusal("", "unknown event ''");
	expect_refusal("cpu,", "unknown event ''");
	expect_refusal("cpu,teapot", "unknown event 'teapot'");
	expect_refusal(name, "unknown event 'xxx");
	expect_refusal("cpu,cpu=1s", "'cpu' is given twice");
	expect_refusal("wall,offcpu", "wall has the samples of offcpu");
	expect_refusal("offcpu,cpu,wall=1ms", "wall has the samples of offcpu");
	expect_refusal("cpu=", "is accepted");
	expect_refusal("cpu=1000", "from 10 us to 3600 s is accepted");
	expect_refusal("cpu=3601s", "out of range");
	expect_refusal("page-faults=10ms", "a whole number above 0");
	expect_refusal("page-faults=0", "a whole number above 0");
	expect_refusal("page-faults=-1", "a whole number above 0");
}

/* The events that another one has with it come last, so that the others keep their places. */
static void lists_are_expanded(void **state)
{
	struct event_list list, all;
	struct buf why;

	(void)state;
	buf_init(&why);
	assert_int_equal(event_list_parse(&list, "wall=300us,syscalls", &why), 0);
	assert_int_equal(list.len, 2);
	event_list_expand(&all, &list);
	assert_int_equal(all.len, 3);
	assert_string_equal(all.items[0].event->name, "wall");
	assert_int_equal(all.items[1].shown_as, 1);
	assert_string_equal(all.items[2].event->name, "offcpu");
	assert_int_equal(all.items[2].interval, 300000);
	assert_int_equal(all.items[2].shown_as, 0);
	buf_release(&why);
}

static void expect_bytes(const char *text, uint64_t bytes, const char *said)
{
	const struct event counts_bytes = {.unit = EVENT_BYTES, .least_interval = 1, .most_interval = 1 << 30};
	struct event_spec spec = {.event = &counts_bytes};
	struct buf why;

	buf_init(&why);
	assert_int_equal(event_spec_set_interval(&spec, text, &why), bytes ? 0 : -EINVAL);
	assert_int_equal(spec.interval, bytes);
	if (bytes)
		event_amount_text(EVENT_BYTES, bytes, &why);
	assert_non_null(strstr(why.data, said));
	buf_release(&why);
}

static void bytes_have_units(void **state)
{
	(void)state;
	expect_bytes("1", 1, "1 bytes");
	expect_bytes("524287", 524287, "524287 bytes");
	expect_bytes("512k", 512 << 10, "512 KiB");
	expect_bytes("3M", 3 << 20, "3 MiB");
	expect_bytes("1g", 1 << 30, "1 GiB");
	expect_bytes("2g", 0, "from 1 bytes to 1 GiB is accepted");
	expect_bytes("0", 0, "above 0");
	expect_bytes("10ms", 0, "above 0");
	expect_bytes("", 0, "above 0");
}

static void the_clock_is_found(void **state)
{
	struct event_list list = {.len = 0};
	struct buf why;

	(void)state;
	buf_init(&why);
	assert_int_equal(event_list_parse(&list, "page-faults,cpu=1ms", &why), 0);
	assert_ptr_equal(event_list_clock(&list), &list.items[1]);
	assert_int_equal(event_list_parse(&list, "page-faults", &why), 0);
	assert_null(event_list_clock(&list));
	buf_release(&why);
}

static bool takes(enum session_engine engine, const char *names)
{
	struct event_list list = {0};
	struct buf why;

	buf_init(&why);
	assert_int_equal(event_list_parse(&list, names, &why), 0);
	buf_release(&why);
	return engine_takes(engine, &list);
}

static void engines_take_what_they_can_tick_for(void **state)
{
	(void)state;
	assert_true(takes(ENGINE_BPF, "cpu,page-faults,syscalls,alloc"));
	assert_true(takes(ENGINE_PERF, "cpu,alloc"));
	assert_true(takes(ENGINE_PERF, "alloc,page-faults"));
	assert_false(takes(ENGINE_PERF, "cpu,page-faults"));
	assert_false(takes(ENGINE_PERF, "context-switches"));
	assert_false(takes(ENGINE_PERF, "offcpu"));
	assert_true(takes(ENGINE_CTIMER, "cpu,alloc,lock"));
	assert_true(takes(ENGINE_ITIMER, "alloc"));
	assert_false(takes(ENGINE_CTIMER, "page-faults"));
	assert_false(takes(ENGINE_ITIMER, "cpu,syscalls"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_is_the_default),
		cmocka_unit_test(names_match_whole),
		cmocka_unit_test(rows_are_complete),
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(lists_are_expanded),
		cmocka_unit_test(bytes_have_units),
		cmocka_unit_test(the_clock_is_found),
		cmocka_unit_test(engines_take_what_they_can_tick_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
