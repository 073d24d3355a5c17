/* SPDX-License-Identifier: MIT */
/* A sample is added when its names are there, when they will not come any more, or when too many wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
	bool is_gone; /* nobody answers */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_named_sample_does_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sample_waits_for_its_names, setup, teardown),
		cmocka_unit_test_setup_teardown(it_waits_for_a_limited_time, setup, teardown),
		cmocka_unit_test_setup_teardown(it_does_not_wait_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flush_adds_what_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_wait_have_a_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
