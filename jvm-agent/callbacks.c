/* SPDX-License-Identifier: MIT */
#include "callbacks.h"

#include "api/profiler.h"
#include "control/control.h"
#include "event/shared.h"
#include "jvm/code.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "method/instrument.h"
#include "method/probes.h"
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
