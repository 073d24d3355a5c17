/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/engines.h"
#include "event/event.h"

static void cpu_is_the_default(void **state)
{
	assert_ptr_equal(event_by_name("cpu"), event_table[0]);
	assert_int_equal(event_table[0]->default_interval, 10 * NS_PER_MS);
}

static void names_match_whole(void **state)
{
	assert_null(event_by_name(""));
	assert_null(event_by_name("cp"));
	assert_null(event_by_name("cpus"));
	assert_null(event_by_name("CPU"));
}

static void rows_are_complete(void **state)
{
	for (size_t i = 0; event_table[i]; i++) {
		const struct event *event = event_table[i];

		assert_ptr_equal(event_by_name(event->name), event);
		assert_non_null(event->help);
		assert_true(event->least_interval > 0);
		assert_in_range(event->default_interval, event->least_interval, event->most_interval);
		assert_true(event->most_interval <= UINT32_MAX || event->perf.is_clock); /* duet_event.gap */
		if (event->program != DUET_PROGRAM_NONE) /* the agent weighs its own events */
			assert_int_equal(event->perf.is_clock || event->is_chosen || event->counts_pages,
					 event->unit != EVENT_COUNT);
		assert_true(event->program == DUET_PROGRAM_PERF || !event->perf.type);
		assert_int_equal(event->place.source, EVENT_COMPLETE);
		assert_true(event_is_file_part(event->name));
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

	memset(name, 'x', sizeof(name) - 1);
	expect_refusal("", "the name of an event is missing");
	expect_refusal("uprobe:/bin/true", "'/bin/true' is not of the form");
	expect_refusal("uprobe::f", "is not of the form");
	expect_refusal("usdt:/bin/true:name", "is not of the form");
	expect_refusal("kprobe:", "is not of the form");
	expect_refusal("kprobe:+8", "is not of the form");
	expect_refusal("mem:", "is not of the form");
	expect_refusal("mem:99999999999999999999:w", "is not of the form");
	expect_refusal("mem:-1", "is not of the form");
	expect_refusal("uprobe:/x:+99999999999999999999", "is not of the form");
	expect_refusal("mem:x/3", "is not of the form");
	expect_refusal("mem:x:rwx", "is not of the form");
	expect_refusal("mem:x:q", "is not of the form");
	expect_refusal("sched:../../id", "is not of the form");
	expect_refusal("sched:sched_switch{}", "is not of the form");
	expect_refusal("sched:sched_switch{prev_pid", "is not of the form");
	expect_refusal("syscalls:", "is not of the form");
	expect_refusal("cpu/event=1", "is not of the form");
	expect_refusal("pmu/cpu//", "is not of the form");
	expect_refusal("r", "unknown event 'r'");
	expect_refusal("r12345678901234567", "unknown event");
	expect_refusal("LLC-load", "unknown event");
	expect_refusal("kprobe:f,kprobe:f=2", "'kprobe:f' is given twice");
	expect_refusal("cycles,cpu-cycles", "'cycles' is given twice");
	expect_refusal("cpu,", "the name of an event is missing");
	expect_refusal("CPU", "unknown event 'CPU': did you mean cpu?");
	expect_refusal("cpu,teapot", "unknown event 'teapot': `duet list`");
	expect_refusal("cup", "unknown event 'cup': did you mean cpu?");
	expect_refusal("cpu,native-mem", "unknown event 'native-mem': did you mean nativemem?");
	expect_refusal(name, "unknown event 'xxx");
	expect_refusal("cpu,cpu=1s", "'cpu' is given twice");
	expect_refusal("wall,offcpu", "wall has the samples of offcpu");
	expect_refusal("offcpu,cpu,wall=1ms", "wall has the samples of offcpu");
	expect_refusal("wakeup,offcpu", "wakeup has the samples of offcpu");
	expect_refusal("wakeup,wall", "wall has the samples of wakeup");
	expect_refusal("cpu=", "is accepted");
	expect_refusal("cpu=1000", "from 10 us to 3600 s is accepted");
	expect_refusal("cpu=3601s", "out of range");
	expect_refusal("page-faults=10ms", "a whole number above 0");
	expect_refusal("page-faults=0", "a whole number above 0");
	expect_refusal("page-faults=-1", "a whole number above 0");
}

static void options_add_events(void **state)
{
	struct event_list list = {.len = 0};
	const struct event *alloc = event_by_name("alloc"), *live = event_by_name("live");
	const struct event *wall = event_by_name("wall");
	struct buf why, said;

	buf_init(&why);
	buf_init(&said);
	assert_int_equal(event_list_set(&list, wall, "50ms", &why), 0);
	assert_int_equal(event_list_set(&list, alloc, "64k", &why), 0);
	assert_int_equal(event_list_set(&list, live, NULL, &why), 0);
	assert_int_equal(event_list_set(&list, alloc, "1m", &why), 0);
	assert_int_equal(event_list_set(&list, alloc, NULL, &why), 0);
	event_list_text(&list, 1, &said);
	assert_string_equal(said.data, "wall every 50 ms, alloc every 1 MiB, live every 64 KiB");
	assert_ptr_equal(event_list_find(&list, live), &list.items[2]);
	assert_null(event_list_find(&list, event_by_name("cpu")));
	assert_int_equal(event_list_set(&list, alloc, "0", &why), -EINVAL);
	assert_int_equal(event_list_set(&list, event_by_name("offcpu"), NULL, &why), -EINVAL);
	assert_non_null(strstr(why.data, "wall has the samples of offcpu"));
	assert_int_equal(list.len, 3);
	buf_release(&said);
	buf_release(&why);
}

static void expect_place(const char *text, enum event_source source, const char *file, const char *name,
			 const char *field, uint64_t offset)
{
	const struct event_place *place;
	const struct event *event;
	struct buf why;

	buf_init(&why);
	event = event_of_text(text, &why);
	assert_non_null(event);
	assert_ptr_equal(event_of_text(text, &why), event);
	assert_string_equal(event->name, text);
	place = &event->place;
	assert_int_equal(place->source, source);
	assert_int_equal(place->at_return, strstr(text, "ret") != NULL);
	assert_string_equal(place->file ? place->file : "", file);
	assert_string_equal(place->name ? place->name : "", name);
	assert_string_equal(place->field ? place->field : "", field);
	assert_int_equal(place->offset, offset);
	buf_release(&why);
}

static void places_are_read(void **state)
{
	expect_place("kprobe:do_exit", EVENT_KPROBE, "", "do_exit", "", 0);
	expect_place("kprobe:do_exit+0x10", EVENT_KPROBE, "", "do_exit", "", 16);
	expect_place("kretprobe:do_exit", EVENT_KPROBE, "", "do_exit", "", 0);
	expect_place("uprobe:/a=b/c:d/x.so:f+8", EVENT_UPROBE, "/a=b/c:d/x.so", "f", "", 8);
	expect_place("uprobe:libc.so.6:+0x1234", EVENT_UPROBE, "libc.so.6", "", "", 0x1234);
	expect_place("uprobe:/x+0x1234", EVENT_UPROBE, "/x", "", "", 0x1234);
	expect_place("uretprobe:/x:f", EVENT_UPROBE, "/x", "f", "", 0);
	expect_place("usdt:/l/x.so:hotspot:gc__begin", EVENT_USDT, "/l/x.so", "gc__begin", "hotspot", 0);
	expect_place("block:block_rq_issue{bytes}", EVENT_TRACEPOINT, "block", "block_rq_issue", "bytes", 0);
	expect_place("syscalls:read", EVENT_TRACEPOINT, "syscalls", "sys_enter_read", "", 0);
	expect_place("syscalls:sys_exit_read", EVENT_TRACEPOINT, "syscalls", "sys_exit_read", "", 0);
	expect_place("cpu/event=0xc0,umask=1/", EVENT_PMU, "cpu", "event=0xc0,umask=1", "", 0);
	expect_place("pmu/cpu/cache-misses/", EVENT_PMU, "cpu", "cache-misses", "", 0);
	expect_place("mem:0x7000/4:w", EVENT_BREAKPOINT, "", "", "", 0x7000);
	expect_place("mem:jiffies+4:rw", EVENT_BREAKPOINT, "", "jiffies", "", 4);
	expect_place("L1-dcache-load-misses", EVENT_COMPLETE, "", "", "", 0);
	expect_place("r1a8", EVENT_COMPLETE, "", "", "", 0);
}

static void counters_have_their_numbers(void **state)
{
	struct buf why;

	buf_init(&why);
	assert_int_equal(event_of_text("L1-dcache-loads", &why)->perf.config, 0);
	assert_int_equal(event_of_text("LLC-store-misses", &why)->perf.config, 0x10102);
	assert_int_equal(event_of_text("node-prefetches", &why)->perf.config, 0x206);
	assert_int_equal(event_of_text("rFf01", &why)->perf.config, 0xff01);
	assert_true(event_of_text("rFf01", &why)->perf.by_period);
	assert_ptr_equal(event_of_text("faults", &why), event_by_name("page-faults"));
	assert_ptr_equal(event_of_text("cpu-clock", &why), event_by_name("cpu"));
	buf_release(&why);
}

/* Terms have commas and '=', paths have '='. */
static void lists_have_places(void **state)
{
	expect_list("cpu,pmu/cpu/event=0xc0,umask=1/=5000,r1a8",
		    "cpu every 10 ms, pmu/cpu/event=0xc0,umask=1/ every 5000, r1a8 every 1000000");
	expect_list("uprobe:/a=b/x:f,syscalls:read=10", "uprobe:/a=b/x:f every 1, syscalls:read every 10");
	expect_list("net:net_dev_xmit{len}=1500", "net:net_dev_xmit{len} every 1500");
}

static void parts_of_file_names_are_known(void **state)
{
	assert_true(event_is_file_part("uprobe:_usr_lib_x_so:f"));
	assert_true(event_is_file_part("cpu_cache-misses_"));
	assert_true(event_is_file_part("r1a8"));
	assert_false(event_is_file_part("backup"));
	assert_false(event_is_file_part("1"));
	assert_false(event_is_file_part(""));
}

/* Events that another event shows come last, so that the others keep their indices. */
static void lists_are_expanded(void **state)
{
	struct event_list list, all;
	struct buf why;

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
	assert_true(takes(ENGINE_BPF, "cpu,page-faults,syscalls,alloc"));
	assert_true(takes(ENGINE_PERF, "cpu,alloc"));
	assert_true(takes(ENGINE_PERF, "alloc,page-faults"));
	assert_false(takes(ENGINE_PERF, "cpu,page-faults"));
	assert_false(takes(ENGINE_PERF, "context-switches"));
	assert_true(takes(ENGINE_PERF, "offcpu,page-faults"));
	assert_false(takes(ENGINE_PERF, "wall,page-faults"));
	assert_true(takes(ENGINE_ITIMER, "cpu,wall,alloc"));
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
		cmocka_unit_test(options_add_events),
		cmocka_unit_test(lists_are_expanded),
		cmocka_unit_test(places_are_read),
		cmocka_unit_test(counters_have_their_numbers),
		cmocka_unit_test(lists_have_places),
		cmocka_unit_test(parts_of_file_names_are_known),
		cmocka_unit_test(bytes_have_units),
		cmocka_unit_test(the_clock_is_found),
		cmocka_unit_test(engines_take_what_they_can_tick_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
