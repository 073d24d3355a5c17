/* SPDX-License-Identifier: MIT */
/* An event that a JVM cannot give does not prevent the others, and capabilities are given back to the JVM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "taps.c"

struct agent_jvm jvm;

static int held, running; /* capabilities, taps */
static bool is_taken; /* another agent has the capability */
static int start_error;

static jvmtiError JNICALL add(jvmtiEnv *env, const jvmtiCapabilities *wanted)
{
	(void)env, (void)wanted;
	held += !is_taken;
	return is_taken ? JVMTI_ERROR_NOT_AVAILABLE : JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL give_back(jvmtiEnv *env, const jvmtiCapabilities *given)
{
	(void)env, (void)given;
	held--;
	return JVMTI_ERROR_NONE;
}

static int start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	assert_int_equal(event->interval, 7);
	*ret_why = "broken";
	running += !start_error;
	return start_error;
}

static void stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	assert_int_equal(ended_ns, 9);
	running--;
}

#define KIND 100

const struct agent_tap *tap_find(uint32_t kind)
{
	static const struct agent_tap tap = {
		.kind = KIND, .first_version = 11, .too_old = "old", .refused = "taken", .start = start, .stop = stop};

	return kind == KIND ? &tap : NULL;
}

/* Starts a tap in a JVM as the arguments describe it; `why` is NULL if the tap starts. */
static void expect(int version, bool taken, int error, const char *why)
{
	static const struct jvmtiInterface_1_ functions = {.AddCapabilities = add,
							   .RelinquishCapabilities = give_back};
	static jvmtiEnv env = &functions;
	const struct duet_agent_event events[] = {{.interval = 1, .kind = DUET_AGENT_EVENT_CLOCK},
						  {.interval = 7, .kind = KIND, .index = 1}};
	const char *said = NULL;

	jvm.jvmti = &env;
	jvm.version = version;
	is_taken = taken;
	start_error = error;
	assert_int_equal(taps_start(events, 2, &said), why ? 2 : 0);
	assert_int_equal(running, !why);
	assert_int_equal(held, !why);
	if (why)
		assert_string_equal(said, why);
	taps_stop(9);
	taps_stop(9); /* once is enough */
	assert_int_equal(running, 0);
	assert_int_equal(held, 0);
}

static void a_tap_starts_where_it_can(void **state)
{
	expect(11, false, 0, NULL);
	expect(8, false, 0, "old");
	expect(17, true, 0, "taken");
	expect(17, false, -EIO, "broken");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tap_starts_where_it_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
