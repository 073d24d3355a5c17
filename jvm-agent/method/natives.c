/* SPDX-License-Identifier: MIT */
/*
 * The address of a method's function stands behind its Method in HotSpot's memory (Method::native_function_addr()).
 * Before the first call it is the address of a function of HotSpot that looks up the method's own function. It is the
 * same for all methods, and is read from a method of the helper class that is never called. JVMTI reports each lookup
 * and lets the agent return another function. A method whose function is known already gets another one by
 * RegisterNatives(), which also discards compiled code that calls it. HotSpot never frees that code (JDK-8369219), so a
 * method keeps our function when its probe is gone, and gets it once.
 */
#include "method/natives.h"

#include "hotspot/metadata.h"
#include "hotspot/vmstructs.h"
#include "jvm/jvm.h"
#include "locked.h"
#include "memory.h"
#include "method/probes.h"
#include "method/rewrite.h"

/* The method of each place; NULL: free. Never changes again: a thread may be about to call through the place. */
static jmethodID methods[NATIVE_CALLS];

static struct {
	pthread_mutex_t lock; /* never held while the JVM is called */
	size_t method_bytes; /* sizeof(Method) */
	uintptr_t unbound; /* function of methods that have not been called */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define LOCAL_REFS 8

/* Object.wait() is Java code of the platform: what is registered when JVMTI reports its wait, is so by the platform. */
static struct {
	JNIEnv *env; /* of the agent's thread, which is about to register; NULL: it is not */
	jclass class;
	const JNINativeMethod *method;
	bool is_done;
} registration;

bool registering_on_wait(JNIEnv *env)
{
	if (env != registration.env)
		return false;
	registration.is_done = !(*env)->RegisterNatives(env, registration.class, registration.method, 1);
	return true;
}

/* Waits for an object that no other thread knows. */
static void wait_a_moment(JNIEnv *env)
{
	jobject object = (*env)->NewByteArray(env, 0);
	jmethodID wait = object ? (*env)->GetMethodID(env, (*env)->GetObjectClass(env, object), "wait", "(JI)V") : NULL;

	if (wait && !(*env)->MonitorEnter(env, object)) {
		registration.env = env;
		(*env)->CallVoidMethod(env, object, wait, (jlong)1, (jint)0);
		registration.env = NULL;
		(*env)->ExceptionClear(env);
		(*env)->MonitorExit(env, object);
	}
	(*env)->ExceptionClear(env);
}

bool registering_quietly(JNIEnv *env, jclass class, const JNINativeMethod *method)
{
	jvmtiEnv *jvmti = jvm.jvmti;
	jthread self = NULL;

	registration.is_done = false;
	if ((*env)->PushLocalFrame(env, LOCAL_REFS))
		return false;
	registration.class = class;
	registration.method = method;
	if (!(*jvmti)->GetCurrentThread(jvmti, &self) &&
	    !(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_MONITOR_WAIT, self)) {
		wait_a_moment(env);
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_MONITOR_WAIT, self);
	}
	(*env)->PopLocalFrame(env, NULL);
	return registration.is_done;
}

uintptr_t natives_called(uint32_t place)
{
	const struct native_call *call = &native_calls[place];
	int32_t id = __atomic_load_n(&call->id, __ATOMIC_ACQUIRE);

	if (id != PROBE_NONE)
		probes_called(id);
	return __atomic_load_n(&call->function, __ATOMIC_ACQUIRE);
}

static struct native_call *find(jmethodID method)
{
	for (size_t i = 0; i < NATIVE_CALLS; i++) {
		jmethodID known = __atomic_load_n(&methods[i], __ATOMIC_ACQUIRE);

		if (known == method)
			return &native_calls[i];
		if (!known)
			return NULL;
	}
	return NULL;
}

static uintptr_t address_of(const struct native_call *call)
{
	return native_calls_at((uint32_t)(call - native_calls));
}

static struct native_call *take_place(jmethodID method)
{
	struct native_call *place = NULL;
	LOCKED(&all.lock);

	for (size_t i = 0; i < NATIVE_CALLS && !place; i++) {
		if (methods[i])
			continue;
		place = &native_calls[i];
		place->id = PROBE_NONE;
		__atomic_store_n(&methods[i], method, __ATOMIC_RELEASE);
	}
	return place;
}

/* Returns the function of the method; 0: it cannot be read. */
static uintptr_t read_function(jmethodID method)
{
	struct metadata_method found;
	uintptr_t function;

	if (!all.method_bytes || !metadata_find((uintptr_t)method, &found) ||
	    memory_copy(&function, found.itself.address + all.method_bytes, sizeof(function)) < sizeof(function))
		return 0;
	return function;
}

void JNICALL natives_on_bind(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, void *address,
			     void **new_address)
{
	struct native_call *call = find(method);

	if (!call || (uintptr_t)address == address_of(call) ||
	    __atomic_load_n(&call->id, __ATOMIC_ACQUIRE) == PROBE_NONE)
		return;
	__atomic_store_n(&call->function, (uintptr_t)address, __ATOMIC_RELEASE);
	*new_address = (void *)address_of(call);
}

bool natives_open(JNIEnv *env, jclass helper)
{
	jmethodID never = (*env)->GetStaticMethodID(env, helper, PROBE_NEVER, "()V");

	(*env)->ExceptionClear(env);
	if (!all.method_bytes)
		all.method_bytes = vmstructs_type_bytes("Method");
	if (never && !all.unbound)
		all.unbound = read_function(never);
	return all.unbound && jvm_set_event(JVMTI_ENABLE, JVMTI_EVENT_NATIVE_METHOD_BIND);
}

bool natives_add(JNIEnv *env, const struct natives_method *of, int32_t id, bool is_new)
{
	struct native_call *call = all.unbound ? find(of->method) : NULL;
	JNINativeMethod ours = {of->name, of->type, NULL};
	uintptr_t function;

	if (!call && all.unbound)
		call = take_place(of->method);
	if (!call)
		return false;
	__atomic_store_n(&call->id, id, __ATOMIC_RELEASE); /* from now on natives_on_bind() sees it */
	function = is_new ? all.unbound : read_function(of->method);
	if (function == all.unbound || function == address_of(call))
		return true;
	ours.fnPtr = (void *)address_of(call);
	if (function)
		__atomic_store_n(&call->function, function, __ATOMIC_RELEASE);
	if (function && (jvm.version >= 15 ? registering_quietly(env, of->class, &ours)
					   : !(*env)->RegisterNatives(env, of->class, &ours, 1)))
		return true;
	__atomic_store_n(&call->id, PROBE_NONE, __ATOMIC_RELEASE);
	return false;
}

void natives_remove(void)
{
	jvm_set_event(JVMTI_DISABLE, JVMTI_EVENT_NATIVE_METHOD_BIND);
	for (size_t i = 0; i < NATIVE_CALLS; i++)
		__atomic_store_n(&native_calls[i].id, PROBE_NONE, __ATOMIC_RELEASE);
}
