/* SPDX-License-Identifier: MIT */
/*
 * Calls of Java methods that take long. The time is taken in Java code, so that a call below the threshold never leaves
 * it. The sample is taken when the call ends; its leaf is the method.
 */
#include "method/instrument.h"
#include "tap.h"

static int trace_start(const struct duet_agent_event *event, const char **ret_why)
{
	return instrument_add(event, PROBE_TIME, ret_why);
}

static void trace_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	instrument_remove();
}

const struct agent_tap tap_trace = {
	.kind = DUET_AGENT_EVENT_TRACE,
	.first_version = 8,
	.needs = INSTRUMENT_NEEDS,
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "the JVM refuses to change loaded classes",
	.start = trace_start,
	.stop = trace_stop,
};
