/* SPDX-License-Identifier: MIT */
/*
 * A sample is added when its names have arrived, when they cannot arrive any more, or when too many samples wait. What
 * waits keeps all that it refers to.
 */
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
#include "join/pending.h"
#include "proc/room.h"
#include "subject/program.h"

#define PC 0x7000100ull
#define METHOD 1

struct fixture {
	struct profile profile;
	struct symbols *symbols;
	struct owners owners;
	struct process process;
	struct jvm *jvm;
	struct origin origin;
	struct pending pending;
	uint64_t windows;
	unsigned asked;
	bool is_gone; /* no answers will come */
};

static void on_pair(void *context, struct origin *origin, const struct duet_sample *sample,
		    const struct duet_java_sample *java, enum join_outcome outcome)
{
	struct fixture *f = context;

	pending_add(&f->pending, &(struct decision){origin, origin->process, f->jvm, sample, java, outcome, false});
}

static bool ask(void *context, struct origin *origin, const struct duet_want *wants, size_t count)
{
	struct fixture *f = context;

	assert_non_null(origin);
	assert_true(!count || wants[0].kind);
	f->asked += count != 0;
	return !f->is_gone;
}

static const struct options options;

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
	f->origin.process = &f->process;
	assert_int_equal(pending_open(&f->pending, &(struct pending_deps){.sink = {&options, &f->profile, f->symbols,
										   &f->owners, &f->windows},
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

	pending_release(&f->pending);
	assert_int_equal(f->origin.references, 0);
	assert_int_equal(f->origin.awaited, 0);
	assert_int_equal(f->process.references, 0);
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

	assert_int_equal(join_sample(f->pending.join, &f->origin, &sample.head, time_ns), 0);
	join_run(f->pending.join, time_ns);
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
		assert_int_equal(f->pending.sink.outcomes.samples, expected);
}

static void a_named_sample_does_not_wait(void **state)
{
	struct fixture *f = *state;

	publish(f);
	take(f, 100);
	has(f, "named", 1);
	assert_int_equal(f->asked, 0);
	assert_int_equal(pending_count(&f->pending), 0);
}

static void a_sample_waits_for_its_names(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	take(f, 90);
	assert_int_equal(f->asked, 2);
	assert_int_equal(f->pending.sink.outcomes.samples, 0);
	assert_int_equal(pending_count(&f->pending), 2);
	assert_int_equal(pending_oldest_ns(&f->pending), 90);
	assert_true(f->origin.awaited > 0);
	publish(f);
	pending_run(&f->pending, clock_monotonic_ns());
	has(f, "named", 2);
	assert_int_equal(pending_count(&f->pending), 0);
	assert_int_equal(pending_oldest_ns(&f->pending), UINT64_MAX);
	assert_int_equal(f->origin.references, 0);
}

static void it_waits_for_a_limited_time(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	pending_run(&f->pending, clock_monotonic_ns());
	assert_int_equal(pending_count(&f->pending), 1);
	pending_run(&f->pending, clock_monotonic_ns() + PENDING_WAIT_NS + 1);
	has(f, "[unknown_method]", 1);
	assert_int_equal(pending_count(&f->pending), 0);
}

static void it_does_not_wait_for_nobody(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	f->is_gone = true;
	pending_run(&f->pending, clock_monotonic_ns());
	has(f, "[unknown_method]", 1);
	take(f, 200);
	has(f, "[unknown_method]", 2);
}

static void a_flush_adds_what_waits(void **state)
{
	struct fixture *f = *state;
	struct process another = {0};

	take(f, 100);
	pending_flush(&f->pending, &another);
	assert_int_equal(pending_count(&f->pending), 1);
	pending_flush(&f->pending, &f->process);
	has(f, "[unknown_method]", 1);
}

static void those_that_wait_have_a_limit(void **state)
{
	struct fixture *f = *state;

	take(f, 100);
	take(f, 200);
	pending_set_max_bytes(&f->pending, f->pending.bytes);
	pending_run(&f->pending, clock_monotonic_ns());
	assert_int_equal(pending_count(&f->pending), 2);
	pending_set_max_bytes(&f->pending, f->pending.bytes - 1);
	pending_run(&f->pending, clock_monotonic_ns());
	assert_int_equal(pending_count(&f->pending), 1);
	has(f, "[unknown_method]", 1);
	pending_set_max_bytes(&f->pending, 1);
	take(f, 300);
	has(f, "[unknown_method]", 2);
}

/* What waits of one user leaves room for what another one's sample lacks. */
static void a_users_waiting_samples_leave_room(void **state)
{
	static const struct payer attacker = {1, 1}, honest = {2, 2};
	struct fixture *f = *state;

	room_open(true);
	room_set_size(ROOM_WAITING, 100);
	f->process.payer = attacker;
	for (uint64_t i = 0; i < 1000; i++)
		take(f, 200 + i);
	assert_int_equal(pending_count(&f->pending), 74); /* one more was in the join */
	has(f, "[unknown_method]", 926);
	f->process.payer = honest;
	for (uint64_t i = 0; i < 10; i++)
		take(f, 2000 + i);
	assert_int_equal(room_held(ROOM_WAITING, &honest), 10);
	publish(f);
	pending_run(&f->pending, clock_monotonic_ns());
	has(f, "named", 1010);
	assert_int_equal(room_held(ROOM_WAITING, &attacker) + room_held(ROOM_WAITING_BYTES, &honest), 0);
	f->process.payer = (struct payer){0};
	room_open(false);
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
	pending_add(&f->pending,
		    &(struct decision){.process = &f->process, .sample = &sample, .outcome = JOIN_STANDALONE});
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
	assert_int_equal(room_held(ROOM_WAKERS, &f->process.payer), 0);
}

/* The waker of a JVM waits for the join, and may come later. */
static void a_sleep_waits_for_its_waker(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_SAMPLE, "java", 100);
	pending_run(&f->pending, clock_monotonic_ns());
	assert_int_equal(f->profile.samples.len, 0);
	assert_int_equal(pending_count(&f->pending), 1);
	take_native(f, DUET_ROLE_INTERRUPT, "java", 0);
	pending_run(&f->pending, clock_monotonic_ns());
	has_stack(f, ";[blocked];[woken by];[interrupt]");
	assert_int_equal(loader_counters[DUET_LOADER_NO_WAKER], 0);
}

static void a_sleep_without_its_waker_is_counted(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_SAMPLE, "java", 100);
	pending_run(&f->pending, clock_monotonic_ns() + 2 * WAKERS_WAIT_NS);
	has_stack(f, ";[blocked]");
	assert_int_equal(loader_counters[DUET_LOADER_NO_WAKER], 1);
}

/* A waker whose sleep was lost does not stay. */
static void a_waker_is_not_kept_forever(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_STRANGER, "other", 0);
	pending_run(&f->pending, clock_monotonic_ns());
	assert_true(room_held(ROOM_WAKERS, &f->process.payer) > 0);
	pending_run(&f->pending, clock_monotonic_ns() + 2 * WAKERS_KEEP_NS);
	assert_int_equal(room_held(ROOM_WAKERS, &f->process.payer), 0);
}

/* ---- what it refers to ---- */

/* A JVM that may end while its records wait. */
struct ending {
	struct origin origin;
	struct process process;
	struct jvm *jvm;
};

static struct ending *ending_new(struct fixture *f)
{
	struct ending *ending = calloc(1, sizeof(*ending));

	assert_non_null(ending);
	ending->process = (struct process){.pid = 10000001, .exited = true};
	ending->origin.process = &ending->process;
	ending->jvm = jvm_new(&f->profile.strings);
	return ending;
}

/* As jvms/readers.c does: what has no references is freed, with a pattern in place of its bytes. */
static bool ending_free(struct ending *ending)
{
	if (ending->origin.references || ending->process.references)
		return false;
	jvm_free(ending->jvm);
	memset(ending, 0xa5, sizeof(*ending));
	free(ending);
	return true;
}

static void take_of(struct fixture *f, struct ending *ending, enum duet_role role, uint64_t waker)
{
	struct {
		struct duet_sample head;
		uint64_t stack[1];
	} sample = {.head = {.head = {.size = sizeof(sample), .time_ns = 5, .tid = 8},
			     .ns_tid = 8,
			     .flags = DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_JVM | DUET_SAMPLE_OFF_CPU,
			     .comm = "java",
			     .process_comm = "java",
			     .weight = 10,
			     .user_depth = 1,
			     .role = role,
			     .waker = waker},
		    .stack = {PC}};

	pending_add(&f->pending, &(struct decision){.origin = &ending->origin,
						    .process = &ending->process,
						    .jvm = ending->jvm,
						    .sample = &sample.head,
						    .outcome = JOIN_WALKED});
}

/* JVM A wakes a thread of JVM B and ends while B's names are missing. */
static void a_waker_outlives_its_jvm(void **state)
{
	struct fixture *f = *state;
	struct ending *a = ending_new(f);
	uint64_t now_ns = clock_monotonic_ns();
	struct {
		struct duet_sample head;
		uint64_t stack[1];
	} sleep = {.head = {.head = {.size = sizeof(sleep), .time_ns = 6, .tid = 7},
			    .flags = DUET_SAMPLE_USER_COMPLETE | DUET_SAMPLE_JVM | DUET_SAMPLE_OFF_CPU,
			    .weight = 1,
			    .user_depth = 1,
			    .waker = WAKER},
		   .stack = {PC}};

	take_of(f, a, DUET_ROLE_WAKER, WAKER);
	on_pair(f, &f->origin, &sleep.head, NULL, JOIN_WALKED);
	assert_int_equal(pending_count(&f->pending), 1);
	assert_false(ending_free(a));
	publish(f);
	pending_run(&f->pending, now_ns);
	assert_int_equal(f->profile.samples.len, 1);
	assert_true(ending_free(a));
}

/* A native process sleeps, and ends before the record of who woke it arrives. */
static void a_sample_outlives_its_process(void **state)
{
	struct fixture *f = *state;
	struct ending *a = ending_new(f);
	struct duet_sample sample = {.head = {.size = sizeof(sample), .time_ns = 5, .tid = 9},
				     .flags = DUET_SAMPLE_OFF_CPU,
				     .weight = 1,
				     .waker = WAKER};

	pending_add(&f->pending,
		    &(struct decision){.process = &a->process, .sample = &sample, .outcome = JOIN_STANDALONE});
	assert_true(pending_has_dead(&f->pending));
	assert_false(ending_free(a));
	pending_run(&f->pending, clock_monotonic_ns() + 2 * WAKERS_WAIT_NS);
	has_stack(f, ";[blocked]");
	assert_true(ending_free(a));
}

/* The mappings are those of the new program: a stack of the old one must not be named by them. */
static void an_exec_ends_a_waker(void **state)
{
	struct fixture *f = *state;

	take_native(f, DUET_ROLE_STRANGER, "sh", 0);
	f->process.programs++;
	take_native(f, DUET_ROLE_SAMPLE, "java", 100);
	pending_run(&f->pending, clock_monotonic_ns() + 2 * WAKERS_WAIT_NS);
	has_stack(f, ";[blocked]");
	assert_int_equal(loader_counters[DUET_LOADER_NO_WAKER], 1);
}

/* ---- cost ---- */

/* Samples are looked at when what they wait for arrives, and not before. */
static void a_silent_agent_costs_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns = clock_monotonic_ns(), splices;

	for (uint64_t i = 0; i < 1000; i++)
		take(f, 100 + i);
	assert_int_equal(pending_count(&f->pending), 1000);
	splices = f->pending.sink.resolver.splices;
	f->asked = 0;
	for (uint64_t i = 0; i < 100; i++)
		pending_run(&f->pending, now_ns + i);
	assert_int_equal(f->pending.sink.resolver.splices, splices);
	assert_int_equal(f->asked, 0);
	pending_run(&f->pending, now_ns + PENDING_WAIT_NS - NS_PER_SEC); /* requested again, once for all of them */
	assert_int_equal(f->asked, 1);
	assert_int_equal(f->pending.sink.resolver.splices, splices);
	publish(f);
	pending_run(&f->pending, now_ns + PENDING_WAIT_NS - NS_PER_SEC);
	has(f, "named", 1000);
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
		cmocka_unit_test_setup_teardown(a_waker_outlives_its_jvm, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sample_outlives_its_process, setup, teardown),
		cmocka_unit_test_setup_teardown(an_exec_ends_a_waker, setup, teardown),
		cmocka_unit_test_setup_teardown(a_silent_agent_costs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_users_waiting_samples_leave_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
