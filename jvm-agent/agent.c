/* SPDX-License-Identifier: MIT */
/* The entry points HotSpot calls; nothing else in this library is visible. */
#include <jvmti.h>
#include <stdio.h>

#include "control.h"
#include "jvm.h"
#include "options.h"
#include "stay.h"

/*
 * Prints only when the agent is loaded at start. An attaching loader gets a code and words the error itself; the
 * application's stderr is not the loader's terminal.
 */
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
	if (jvm_open(vm, at_start)) {
		complain(at_start, "this JVM refuses what the agent needs of JVMTI");
		return DUET_ATTACH_NO_JVMTI;
	}
	return control_open(&options);
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *text, void *reserved)
{
	int code = open_agent(vm, text, false);

	(void)reserved;
	return code == DUET_ATTACH_OK ? control_run() : code;
}

/*
 * A failure must not keep the application from starting: it runs without being profiled. Only a bad option ends the
 * JVM.
 */
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text, void *reserved)
{
	int code = open_agent(vm, text, true);

	(void)reserved;
	return code == DUET_ATTACH_BAD_OPTIONS ? JNI_ERR : JNI_OK;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm)
{
	(void)vm;
	stay_seal();
}
