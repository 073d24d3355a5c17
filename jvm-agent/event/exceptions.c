/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of Java, where they are created. JVMTI's own event of exceptions that are thrown can be had only when the
 * JVM starts, and slows every throw. Here the constructors of Throwable call the agent, as JFR's do.
 */
#include <stdio.h>

#include "method/instrument.h"
#include "tap.h"

static int exceptions_start(const struct duet_agent_event *event, const char **ret_why)
{
	struct duet_agent_event constructors = *event;

	snprintf(constructors.target, sizeof(constructors.target), "java.lang.Throwable.<init>");
	return instrument_add(&constructors, PROBE_CREATE, ret_why);
}

static void exceptions_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	instrument_remove();
}

const struct agent_tap tap_exceptions = {
	.kind = DUET_AGENT_EVENT_EXCEPTIONS,
	.first_version = 8,
	.needs = INSTRUMENT_NEEDS,
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "the JVM refuses to change loaded classes",
	.start = exceptions_start,
	.stop = exceptions_stop,
};
