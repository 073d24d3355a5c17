/* SPDX-License-Identifier: MIT */
/* The entry points of an agent, which HotSpot calls. Those of JNI and C are in api/. */
#include <stdio.h>

#include "api/profiler.h"
#include "callbacks.h"
#include "control/control.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "options.h"

/* Prints only at start: an attaching loader words the error itself, and does not have the application's stderr. */
static void complain(bool at_start, const char *why)
{
	if (at_start)
		fprintf(stderr, "duet: %s\n", why);
}

static int open_agent(JavaVM *vm, const char *text, bool at_start)
{
	struct agent_options options;
	const char *why;

	if (options_parse(&options, text, &why)) {
		complain(at_start, why);
		return DUET_ATTACH_BAD_OPTIONS;
	}
	if (callbacks_open(vm, at_start)) {
		complain(at_start, "this JVM refuses what the agent needs of JVMTI");
		return DUET_ATTACH_NO_JVMTI;
	}
	return control_open(&options);
}

/* Arguments of async-profiler, or none: a recorder of this process's own takes the samples. */
static int open_profiler(JavaVM *vm, const char *text, bool at_start)
{
	bool begins = at_start && text && *text;

	if (callbacks_open(vm, begins)) {
		complain(at_start, "this JVM refuses what the agent needs of JVMTI");
		return DUET_ANSWER_REFUSED;
	}
	if (begins)
		return profiler_keep(text);
	return at_start || !text || !*text ? DUET_ANSWER_DONE : profiler_execute_agent(text);
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *text, void *reserved)
{
	int code;

	if (profiler_owns(text))
		return open_profiler(vm, text, false);
	code = open_agent(vm, text, false);
	return code == DUET_ATTACH_OK ? control_run() : code;
}

/* A failure must not keep the application from starting, without a profile. Only a bad option ends the JVM. */
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text, void *reserved)
{
	int code;

	if (profiler_owns(text))
		return open_profiler(vm, text, true) ? JNI_ERR : JNI_OK;
	code = open_agent(vm, text, true);
	return code == DUET_ATTACH_BAD_OPTIONS ? JNI_ERR : JNI_OK;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm)
{
	stay_seal();
}
