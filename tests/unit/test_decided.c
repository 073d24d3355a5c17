/* SPDX-License-Identifier: MIT */
/* A sample is added when its names have arrived, when they cannot arrive any more, or when too many samples wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/counters.h"
#include "join/decided.h"
#include "subject/owners.h"

#define PC 0x7000100ull
#define METHOD 1

struct fixture {
	struct profile profile;
	struct symbols *symbols;
	struct owners owners;
	struct process process;
	struct jvm *jvm;
	struct decided decided;
	uint64_t windows;
	unsigned asked;
	bool is_gone; /* no answers will come */
};

static void on_pair(void *context, void *owner, const struct duet_sample *sample, const struct duet_java_sample *java,
		    enum join_outcome outcome)
{
	struct fixture *f = context;

	decided_add(&f->decided, &(struct decision){owner, &f->process, f->jvm, sample, java, outcome});
}

static bool ask(void *context, void *owner, const struct duet_want *wants, size_t count)
{
	struct fixture *f = context;

	assert_ptr_equal(owner, f);
	assert_true(count > 0 && wants[0].kind);
	f->asked++;
	return !f->is_gone;
}

static int setup(void **state)
{
	const struct duet_code_heap heap = {0x7000000, 0x8000000};
	const struct duet_code_load load = {.time_ns = 1, .method = METHOD, .address = PC - 16, .code_bytes = 64};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(loader_counters, 0, sizeof(loader_counters));
	assert_int_equal(profile_init(&f->profile), 0);
	assert_int_equal(profile_event(&f->profile, "cpu", PROFILE_NS, 0), 0);
	f->symbols = symbols_new();
	f->jvm = jvm_new(&f->profile.strings);
	f->process = (struct process){.pid = 10000000, .exited = true};
	owners_open(&f->owners, &f->profile, false);
	assert_int_equal(decided_open(&f->decided, &(struct decided_parts){.profile = &f->profile,
									   .symbols = f->symbols,
									   .owners = &f->owners,
									   .windows = &f->windows,
									   .handler = on_pair,
									   .ask = ask,
									   .context = f}),
			 0);
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_HEAP, &heap, sizeof(heap)), 0);
	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_CODE_LOAD, &load, sizeof(load)), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	decided_release(&f->decided);
	owners_release(&f->owners);
	jvm_free(f->jvm);
	symbols_free(f->symbols);
	profile_release(&f->profile);
	maps_release(&f->process.maps);
	free(f);
	return 0;
}

static void publish(struct fixture *f)
{
	struct {
		struct duet_method head;
		char text[8];
	} record = {.head = {.method = METHOD, .class_len = 3, .name_len = 5}, .text = "LA;named"};

	assert_int_equal(jvm_apply(f->jvm, DUET_AGENT_METHOD, &record, sizeof(record)), 0);
}

/* A whole walk, which needs no other half. */
static void take(struct fixture *f, uint64_t time_ns)
{
	struct {
		struct duet_sample head;
		uint64_t stack[1];
	} sample = {.head = {.head = {.size = sizeof(sample), .time_ns = time_ns, .tid = 7},
			     .ns_tid = 7,
			     .flags = DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_JVM,
			     .comm = "java",
			     .weight = 1,
			     .user_depth = 1},
		    .stack = {PC}};

	assert_int_equal(join_sample(f->decided.join, f, &sample.head, time_ns), 0);
	join_run(f->decided.join, time_ns);
}

/* Asserts the number of samples in the profile whose leaf has this name. */
static void has(struct fixture *f, const char *name, uint64_t expected)
{
	struct profile *profile = &f->profile;
	uint64_t found = 0;

	for (size_t i = 1; i < profile->nodes.len; i++) {
		const struct frame *leaf = &profile->frames.items[profile->nodes.items[i].frame];

		found += !strcmp(intern_text(&profile->strings, leaf->name), name);
	}
	assert_int_equal(found, expected != 0);
	if (expected)
		assert_int_equal(f->decided.outcomes.samples, expected);
}

static void a_named_sample_does_not_wait(void **state)
{
	struct fixture *f = *state;

	publish(f);
	take(f, 100);
	has(f, "named", 1);
	assert_int_equal(f->asked, 0);
	assert_int_equal(decided_waiting(&f->decided), 0);
}

static void a_sample_waits_for_its_names(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	take(f, 90);
	assert_int_equal(f->asked, 2);
	assert_int_equal(f->decided.outcomes.samples, 0);
	assert_int_equal(decided_waiting(&f->decided), 2);
	assert_int_equal(decided_oldest_ns(&f->decided), 90);
	assert_true(decided_awaits(&f->decided, f));
	assert_false(decided_awaits(&f->decided, NULL));
	publish(f);
	decided_run(&f->decided, clock_monotonic_ns());
	has(f, "named", 2);
	assert_int_equal(decided_waiting(&f->decided), 0);
	assert_int_equal(decided_oldest_ns(&f->decided), UINT64_MAX);
	assert_false(decided_awaits(&f->decided, f));
}

static void it_waits_for_a_limited_time(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	decided_run(&f->decided, clock_monotonic_ns());
	assert_int_equal(decided_waiting(&f->decided), 1);
	decided_run(&f->decided, clock_monotonic_ns() + DECIDED_WAIT_NS + 1);
	has(f, "[unknown_method]", 1);
	assert_int_equal(decided_waiting(&f->decided), 0);
}

static void it_does_not_wait_for_nobody(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	f->is_gone = true;
	decided_run(&f->decided, clock_monotonic_ns());
	has(f, "[unknown_method]", 1);
	take(f, 200);
	has(f, "[unknown_method]", 2);
}

static void a_flush_adds_what_waits(void **state)
{
	struct fixture *f = *state;
	int another;

	take(f, 100);
	decided_flush(&f->decided, &another);
	assert_int_equal(decided_waiting(&f->decided), 1);
	decided_flush(&f->decided, f);
	has(f, "[unknown_method]", 1);
}

static void those_that_wait_have_a_limit(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	take(f, 200);
	decided_set_max_bytes(&f->decided, f->decided.nameless.bytes);
	decided_run(&f->decided, clock_monotonic_ns());
	assert_int_equal(decided_waiting(&f->decided), 2);
	decided_set_max_bytes(&f->decided, f->decided.nameless.bytes - 1);
	decided_run(&f->decided, clock_monotonic_ns());
	assert_int_equal(decided_waiting(&f->decided), 1);
	has(f, "[unknown_method]", 1);
	decided_set_max_bytes(&f->decided, 1);
	take(f, 300);
	has(f, "[unknown_method]", 2);
}

/* ---- sleeps and who ended them ---- */

#define WAKER 0x1234567

static void take_native(struct fixture *f, enum duet_role role, const char *comm, uint64_t weight)
{
	struct duet_sample sample = {.head = {.size = sizeof(sample), .time_ns = 5, .tid = 7},
				     .flags = role == DUET_ROLE_SAMPLE ? DUET_SAMPLE_OFF_CPU : DUET_SAMPLE_KERNEL,
				     .weight = weight,
				     .role = role,
				     .waker = WAKER};

	strcpy(sample.comm, comm);
	strcpy(sample.process_comm, comm);
	decided_add(&f->decided, &(struct decision){NULL, &f->process, NULL, &sample, NULL, JOIN_STANDALONE});
}

/* Asserts that the only sample has this stack, root first. */
static void has_stack(struct fixture *f, const char *expected)
{
	const struct profile *profile = &f->profile;
	uint32_t node = profile->samples.recent.items[0].node;
	char text[128] = "";

	assert_int_equal(profile->samples.len, 1);
	for (; node; node = profile->nodes.items[node].parent) {
		const struct frame *frame = &profile->frames.items[profile->nodes.items[node].frame];
		char rest[sizeof(text)];

		strcpy(rest, text);
		snprintf(text, sizeof(text), ";%s%s", intern_text(&profile->strings, frame->name), rest);
	}
	assert_string_equal(text, expected);
}

static void a_sleep_has_its_waker(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_STRANGER, "kworker/0:1", 0);
	assert_int_equal(f->profile.samples.len, 0);
	take_native(f, DUET_ROLE_SAMPLE, "java", 100);
	has_stack(f, ";[blocked];[woken by];kworker/0:1");
	assert_int_equal(f->profile.samples.recent.items[0].weight, 100);
	assert_int_equal(f->decided.wakers.bytes, 0);
}

/* The waker of a JVM waits for the join, and may come later. */
static void a_sleep_waits_for_its_waker(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_SAMPLE, "java", 100);
	decided_run(&f->decided, clock_monotonic_ns());
	assert_int_equal(f->profile.samples.len, 0);
	assert_int_equal(decided_waiting(&f->decided), 1);
	take_native(f, DUET_ROLE_INTERRUPT, "java", 0);
	decided_run(&f->decided, clock_monotonic_ns());
	has_stack(f, ";[blocked];[woken by];[interrupt]");
	assert_int_equal(loader_counters[DUET_LOADER_NO_WAKER], 0);
}

static void a_sleep_without_its_waker_is_counted(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_SAMPLE, "java", 100);
	decided_run(&f->decided, clock_monotonic_ns() + 2 * WAKERS_WAIT_NS);
	has_stack(f, ";[blocked]");
	assert_int_equal(loader_counters[DUET_LOADER_NO_WAKER], 1);
}

/* A waker whose sleep was lost does not stay. */
static void a_waker_is_not_kept_forever(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_STRANGER, "other", 0);
	decided_run(&f->decided, clock_monotonic_ns());
	assert_true(f->decided.wakers.bytes > 0);
	decided_run(&f->decided, clock_monotonic_ns() + 2 * WAKERS_KEEP_NS);
	assert_int_equal(f->decided.wakers.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_named_sample_does_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sample_waits_for_its_names, setup, teardown),
		cmocka_unit_test_setup_teardown(it_waits_for_a_limited_time, setup, teardown),
		cmocka_unit_test_setup_teardown(it_does_not_wait_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flush_adds_what_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_wait_have_a_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sleep_has_its_waker, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sleep_waits_for_its_waker, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sleep_without_its_waker_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_waker_is_not_kept_forever, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
