/* SPDX-License-Identifier: MIT */
/* The functions that HotSpot calls: JVMTI's callbacks, and an agent's entry points. */
#include "agent.h"

#include <stdio.h>

#include "api/profiler.h"
#include "control/control.h"
#include "event/shared.h"
#include "jvm/code.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "method/instrument.h"
#include "method/probes.h"
#include "options.h"
#include "tap.h"

static void JNICALL on_class_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
	jvm_prepare_class(class);
	probes_on_prepare(env, class);
	instrument_on_prepare(env, class);
}

static void JNICALL on_vm_init(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	__atomic_store_n(&jvm.is_starting, true, __ATOMIC_RELEASE);
	control_run_at_start();
	profiler_begin();
	__atomic_store_n(&jvm.is_starting, false, __ATOMIC_RELEASE);
}

static void JNICALL on_vm_death(jvmtiEnv *jvmti, JNIEnv *env)
{
	profiler_end();
	control_last_words();
	stay_seal();
	control_goodbye();
	control_leave();
}

static void JNICALL on_compiled_method_load(jvmtiEnv *jvmti, jmethodID method, jint bytes, const void *address,
					    jint map_length, const jvmtiAddrLocationMap *map, const void *info)
{
	code_on_load(address);
	compilations_on_load(method);
}

int callbacks_open(JavaVM *vm, bool at_start)
{
	jvmtiEventCallbacks callbacks = {
		.VMInit = on_vm_init,
		.VMDeath = on_vm_death,
		.ClassPrepare = on_class_prepare,
		.CompiledMethodLoad = on_compiled_method_load,
		.CompiledMethodUnload = code_on_unload,
		.DynamicCodeGenerated = code_on_stub,
		.ThreadStart = threads_on_start,
		.ThreadEnd = threads_on_end,
	};

	taps_add_callbacks(&callbacks);
	return jvm_open(vm, &callbacks, at_start);
}

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
