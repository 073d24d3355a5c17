/* SPDX-License-Identifier: MIT */
/*
 * Calls of Java methods: each method that the user has named calls the agent at its entry. The sample's leaf is the
 * method.
 */
#include "method/instrument.h"
#include "tap.h"

static int method_start(const struct duet_agent_event *event, const char **ret_why)
{
	return instrument_add(event, PROBE_CALL, ret_why);
}

static void method_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	instrument_remove();
}

const struct agent_tap tap_method = {
	.kind = DUET_AGENT_EVENT_METHOD,
	.first_version = 8,
	.needs = INSTRUMENT_CALL_NEEDS,
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "the JVM refuses to change loaded classes",
	.add_callbacks = instrument_add_callbacks,
	.start = method_start,
	.stop = method_stop,
};
