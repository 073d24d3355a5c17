/* SPDX-License-Identifier: MIT */
#include "jvm/jvm.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "hotspot/vmstructs.h"
#include "jvm/code.h"
#include "libc_versions.h"
#include "memory.h"

/* HotSpot's own limit for one JNI local frame (MaxJNILocalCapacity). */
#define LOCAL_REFS_MAX 65536
#define LOCAL_REFS 16
#define PLANNED_REFS 32
#define CLASSES_AT_ONCE 64 /* takes less than a millisecond */

struct agent_jvm jvm;
static void *libjvm;

/* ---- events ---- */

/*
 * Enabled only while a stay is open: the agent costs nothing between stays. ClassLoad has its callback from a tap. It
 * is always enabled, because AsyncGetCallTrace returns -1 unless an agent listens to it.
 */
static const jvmtiEvent stay_events[] = {
	JVMTI_EVENT_CLASS_LOAD,		  JVMTI_EVENT_CLASS_PREPARE,
	JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
	JVMTI_EVENT_THREAD_START,	  JVMTI_EVENT_THREAD_END,
};

bool jvm_set_event(jvmtiEventMode mode, jvmtiEvent event)
{
	return !(*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, event, NULL);
}

void jvm_events(jvmtiEventMode mode)
{
	if (!jvm.jvmti)
		return;
	for (size_t i = 0; i < sizeof(stay_events) / sizeof(stay_events[0]); i++)
		jvm_set_event(mode, stay_events[i]);
	if (mode == JVMTI_ENABLE && code_has_stub_events())
		jvm_set_event(JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
}

/* ---- opening ---- */

#define START_STEP_NS 5000000
#define START_STEPS 400

/*
 * Returns the JVMTI environment. HotSpot's attach listener accepts requests before the JVM's start is complete, and
 * GetEnv() returns JNI_EDETACHED until then. That lasts milliseconds, or longer with an application's own class loader
 * or security manager: waits 2 s at most.
 */
static bool get_jvmti(JavaVM *vm, jvmtiEnv **ret)
{
	const struct timespec step = {.tv_nsec = START_STEP_NS};
	jint err = (*vm)->GetEnv(vm, (void **)ret, JVMTI_VERSION_1_1);

	for (int i = 0; i < START_STEPS && err == JNI_EDETACHED; i++) {
		nanosleep(&step, NULL);
		err = (*vm)->GetEnv(vm, (void **)ret, JVMTI_VERSION_1_1);
	}
	return !err;
}

/*
 * The events that must be on before main() when the agent is loaded at start. One is CompiledMethodLoad: while an agent
 * listens to it, the compilers record which inlined method each instruction belongs to (as with DebugNonSafepoints).
 * Code that was compiled before an attach has that record at safepoints only.
 */
static const jvmtiEvent start_events[] = {
	JVMTI_EVENT_VM_INIT,
	JVMTI_EVENT_CLASS_LOAD,
	JVMTI_EVENT_CLASS_PREPARE,
	JVMTI_EVENT_COMPILED_METHOD_LOAD,
	JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
};

int jvm_open(JavaVM *vm, const jvmtiEventCallbacks *callbacks, bool at_start)
{
	const jvmtiCapabilities wanted = {
		.can_get_source_file_name = 1,
		.can_get_line_numbers = 1,
		.can_generate_compiled_method_load_events = 1,
	};
	jvmtiEnv *jvmti;
	Dl_info info;

	if (jvm.jvmti)
		return 0;
	if (!get_jvmti(vm, &jvmti))
		return -ENOTSUP;
	if ((*jvmti)->AddCapabilities(jvmti, &wanted) ||
	    (*jvmti)->SetEventCallbacks(jvmti, callbacks, sizeof(*callbacks))) {
		(*jvmti)->DisposeEnvironment(jvmti);
		return -ENOTSUP;
	}
	jvm.vm = vm;
	jvm.jvmti = jvmti;
	jvm.at_start = at_start;
	/* however it was loaded; never closed: libjvm never leaves the process */
	if (dladdr((const void *)(uintptr_t)(*vm)->GetEnv, &info) && info.dli_fname)
		libjvm = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (libjvm)
		jvm.asgct = (asgct_function)(uintptr_t)dlsym(libjvm, "AsyncGetCallTrace");
	jvm_set_event(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH);
	for (size_t i = 0; at_start && i < sizeof(start_events) / sizeof(start_events[0]); i++)
		jvm_set_event(JVMTI_ENABLE, start_events[i]);
	return 0;
}

void jvm_set_alloc_interval(uint32_t bytes)
{
	const jvmtiCapabilities needs = {.can_generate_sampled_object_alloc_events = 1};

	if (bytes > INT_MAX || (*jvm.jvmti)->AddCapabilities(jvm.jvmti, &needs))
		return;
	(void)(*jvm.jvmti)->SetHeapSamplingInterval(jvm.jvmti, (jint)bytes);
	(void)(*jvm.jvmti)->RelinquishCapabilities(jvm.jvmti, &needs);
}

/* "1.8" is 8, "17" is 17. */
static int java_version(void)
{
	char text[16];

	jvm_property("java.vm.specification.version", text, sizeof(text));
	return !strncmp(text, "1.", 2) ? atoi(text + 2) : atoi(text);
}

/* Finds the pthread key under which HotSpot keeps the current Thread, besides its thread-local variable. */
static bool find_thread_key(uintptr_t java_thread)
{
	for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
		if ((uintptr_t)pthread_getspecific(key) == java_thread) {
			jvm.thread_key = key;
			return true;
		}
	}
	return false;
}

static uintptr_t own_java_thread(JNIEnv *env)
{
	jthread thread = NULL;

	jvm.eetop = jvm_field(env, "java/lang/Thread", "eetop", "J");
	jvm.thread_id = jvm_field(env, "java/lang/Thread", "tid", "J");
	if (!jvm.eetop || (*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &thread) || !thread)
		return 0;
	return jvm_java_thread(env, thread);
}

/* An instance field's id is its offset, shifted left past two tag bits (jfieldIDWorkaround). */
static uint16_t field_offset(JNIEnv *env, const char *class_name, const char *name, const char *type)
{
	uintptr_t id = (uintptr_t)jvm_field(env, class_name, name, type);

	return id && id >> 2 < DUET_MAX_OFFSET ? (uint16_t)(id >> 2) : DUET_JVM_NO_FIELD;
}

/* Finds the layout of virtual threads by this thread's name and id, and the fields of Java objects that hold them. */
static void learn_virtual_threads(JNIEnv *env, uintptr_t java_thread)
{
	struct virtual_witness witness = {.java_thread = java_thread};
	jvmtiThreadInfo info = {0};
	jthread thread = NULL;

	if (!jvm.thread_id || (*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &thread) ||
	    (*jvm.jvmti)->GetThreadInfo(jvm.jvmti, thread, &info))
		return;
	witness.id = (uint64_t)(*env)->GetLongField(env, thread, jvm.thread_id);
	witness.name = info.name ? info.name : "";
	witness.object_id = field_offset(env, "java/lang/Thread", "tid", "J");
	witness.object_name = field_offset(env, "java/lang/Thread", "name", "Ljava/lang/String;");
	witness.string_value = field_offset(env, "java/lang/String", "value", "[B");
	witness.string_coder = field_offset(env, "java/lang/String", "coder", "B");
	virtual_threads_learn(&witness, &jvm.virtual_threads);
	jvm_deallocate(info.name);
}

void jvm_learn(JNIEnv *env)
{
	uintptr_t java_thread;

	if (jvm.version || (*env)->PushLocalFrame(env, LOCAL_REFS))
		return;
	jvm.version = java_version();
	memory_open(libjvm);
	if (!jvmstructs_open()) {
		jvm.checks_jni = jvmflags_is_set("CheckJNICalls");
		jvm.reads_methods = metadata_open(jvm.version, false);
		nmethods_open(jvm.version);
	}
	java_thread = own_java_thread(env);
	if (jvm.asgct && java_thread && find_thread_key(java_thread)) {
		jvm.env_offset = (intptr_t)env - (intptr_t)java_thread;
		jvm.thread_vtable = *(const uintptr_t *)java_thread;
	} else {
		jvm.asgct = NULL;
	}
	if (java_thread && jvm.version >= 21)
		learn_virtual_threads(env, java_thread);
	(*env)->PopLocalFrame(env, NULL);
}

/*
 * Does not call GetEnv(), which reads a thread-local variable of libjvm. glibc allocates that with malloc() at a
 * thread's first access. A thread that was interrupted in malloc() before that access would wait for itself forever.
 * pthread_getspecific() only loads.
 */
uintptr_t jvm_current_thread(void)
{
	uintptr_t thread = jvm.thread_vtable ? (uintptr_t)pthread_getspecific(jvm.thread_key) : 0;

	return thread && *(const uintptr_t *)thread == jvm.thread_vtable ? thread : 0;
}

/* HotSpot plans for 32 references, and counts anew only for a capacity that is larger (jniCheck.cpp). */
void jvm_expect_references(JNIEnv *env)
{
	if (jvm.checks_jni)
		(void)(*env)->EnsureLocalCapacity(env, PLANNED_REFS + 1);
}

void jvm_prepare_class(jclass class)
{
	jmethodID *methods;
	jint count;

	if (!(*jvm.jvmti)->GetClassMethods(jvm.jvmti, class, &count, &methods))
		jvm_deallocate(methods);
}

bool jvm_prepare_begin(JNIEnv *env, struct jvm_preparing *ret)
{
	*ret = (struct jvm_preparing){0};
	if ((*env)->PushLocalFrame(env, LOCAL_REFS_MAX)) {
		(*env)->ExceptionClear(env);
		return false;
	}
	if (!(*jvm.jvmti)->GetLoadedClasses(jvm.jvmti, &ret->count, &ret->classes))
		return true;
	(*env)->PopLocalFrame(env, NULL);
	return false;
}

bool jvm_prepare_some(struct jvm_preparing *preparing)
{
	for (int i = 0; i < CLASSES_AT_ONCE && preparing->done < preparing->count; i++)
		jvm_prepare_class(preparing->classes[preparing->done++]);
	return preparing->done < preparing->count;
}

void jvm_prepare_end(JNIEnv *env, struct jvm_preparing *preparing)
{
	jvm_deallocate(preparing->classes);
	(*env)->PopLocalFrame(env, NULL);
}

void jvm_property(const char *name, char *text, size_t size)
{
	char *value = NULL;

	text[0] = '\0';
	if (!jvm.jvmti || (*jvm.jvmti)->GetSystemProperty(jvm.jvmti, name, &value))
		return;
	strncat(text, value, size - 1);
	jvm_deallocate(value);
}

uintptr_t jvm_java_thread(JNIEnv *env, jthread thread)
{
	return jvm.eetop ? (uintptr_t)(*env)->GetLongField(env, thread, jvm.eetop) : 0;
}

JNIEnv *jvm_own_env(void)
{
	JNIEnv *env = NULL;

	return (*jvm.vm)->GetEnv(jvm.vm, (void **)&env, JNI_VERSION_1_6) ? NULL : env;
}

jfieldID jvm_field(JNIEnv *env, const char *class_name, const char *name, const char *type)
{
	jclass class = (*env)->FindClass(env, class_name);
	jfieldID field = class ? (*env)->GetFieldID(env, class, name, type) : NULL;

	(*env)->ExceptionClear(env);
	(*env)->DeleteLocalRef(env, class);
	return field;
}

char *jvm_class_signature(jclass class)
{
	char *signature = NULL;

	return (*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &signature, NULL) ? NULL : signature;
}

void jvm_deallocate(void *memory)
{
	if (memory)
		(*jvm.jvmti)->Deallocate(jvm.jvmti, memory);
}
