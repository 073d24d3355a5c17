/* SPDX-License-Identifier: MIT */
/*
 * Methods of Java that call the agent (method/instrument.h). The sample's leaf is the method.
 *
 * method: each call of a method that the user has named, at its entry.
 * trace: calls that take long. The time is taken in Java code, so that a call below the threshold never leaves it. The
 * sample is taken when the call ends.
 * exceptions: where they are created, by the constructors of Throwable, as JFR does it. JVMTI's own event of exceptions
 * that are thrown can be had only when the JVM starts, and slows every throw.
 */
#include <stdio.h>

#include "method/instrument.h"
#include "method/natives.h"
#include "tap.h"

static int start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	return instrument_add(event, tap->kind == DUET_AGENT_EVENT_METHOD ? PROBE_CALL : PROBE_TIME, ret_why);
}

static int exceptions_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	struct duet_agent_event constructors = *event;

	snprintf(constructors.target, sizeof(constructors.target), "java.lang.Throwable.<init>");
	return instrument_add(&constructors, PROBE_CREATE, ret_why);
}

static void stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	instrument_remove();
}

const struct agent_tap tap_method = {
	.kind = DUET_AGENT_EVENT_METHOD,
	.needs = {.can_retransform_classes = 1,
		  .can_retransform_any_class = 1,
		  .can_generate_native_method_bind_events = 1,
		  .can_generate_monitor_events = 1},
	.refused = "the JVM refuses to change loaded classes",
	.callbacks = {.ClassFileLoadHook = instrument_on_class_file, .NativeMethodBind = natives_on_bind},
	.start = start,
	.stop = stop,
};

const struct agent_tap tap_trace = {
	.kind = DUET_AGENT_EVENT_TRACE,
	.needs = {.can_retransform_classes = 1, .can_retransform_any_class = 1},
	.refused = "the JVM refuses to change loaded classes",
	.start = start,
	.stop = stop,
};

const struct agent_tap tap_exceptions = {
	.kind = DUET_AGENT_EVENT_EXCEPTIONS,
	.needs = {.can_retransform_classes = 1, .can_retransform_any_class = 1},
	.refused = "the JVM refuses to change loaded classes",
	.start = exceptions_start,
	.stop = stop,
};
