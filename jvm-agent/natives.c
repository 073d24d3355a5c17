/* SPDX-License-Identifier: MIT */
/*
 * The address of a method's function stands behind its Method in HotSpot's memory (Method::native_function_addr()).
 * Before the first call it is the address of a function of HotSpot that looks up the method's own function. It is the
 * same for all methods, and is read from a method of the helper class that is never called. JVMTI reports each lookup
 * and lets the agent return another function. A method whose function is known already gets another one by
 * RegisterNatives(), which also discards compiled code that calls it.
 */
#include "natives.h"

#include <pthread.h>
#include <string.h>

#include "jvm.h"
#include "memory.h"
#include "metadata.h"
#include "native_calls.h"
#include "probes.h"
#include "registering.h"
#include "rewrite.h"
#include "vmstructs.h"

/*
 * A place is never given to another method: a thread may be about to call through it at any time. `method` is written
 * last, with release order; all members but those before `lock` are guarded by it.
 */
static struct native {
	jmethodID method; /* NULL: free */
	uintptr_t function; /* the method's own; 0: not known yet. Atomic */
	int32_t id; /* of the probe, or PROBE_NONE. Atomic */
	jweak class;
	char *name, *type; /* allocated by JVMTI */
} natives[NATIVE_CALLS];

static struct {
	pthread_mutex_t lock; /* never held while the JVM is called */
	size_t method_bytes; /* sizeof(Method) */
	uintptr_t unbound; /* function of methods that have not been called */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the calls ---- */

uintptr_t natives_called(uint32_t place)
{
	int32_t id = __atomic_load_n(&natives[place].id, __ATOMIC_ACQUIRE);

	if (id != PROBE_NONE)
		probes_called(id);
	return __atomic_load_n(&natives[place].function, __ATOMIC_ACQUIRE);
}

/* ---- places ---- */

static struct native *find(jmethodID method)
{
	for (size_t i = 0; i < NATIVE_CALLS; i++) {
		jmethodID known = __atomic_load_n(&natives[i].method, __ATOMIC_ACQUIRE);

		if (known == method)
			return &natives[i];
		if (!known)
			return NULL;
	}
	return NULL;
}

static uintptr_t call_of(const struct native *native)
{
	return native_calls_at((uint32_t)(native - natives));
}

static struct native *take_place(JNIEnv *env, jclass class, jmethodID method)
{
	struct native entry = {.id = PROBE_NONE}, *place = NULL;

	jvm_expect_references(env);
	entry.class = (*env)->NewWeakGlobalRef(env, class);
	if (!entry.class || (*jvm.jvmti)->GetMethodName(jvm.jvmti, method, &entry.name, &entry.type, NULL)) {
		(*env)->DeleteWeakGlobalRef(env, entry.class);
		return NULL;
	}
	pthread_mutex_lock(&all.lock);
	for (size_t i = 0; i < NATIVE_CALLS && !place; i++)
		if (!natives[i].method)
			place = &natives[i];
	if (place) {
		*place = entry;
		__atomic_store_n(&place->method, method, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&all.lock);
	if (place)
		return place;
	jvm_deallocate(entry.name);
	jvm_deallocate(entry.type);
	(*env)->DeleteWeakGlobalRef(env, entry.class);
	return NULL;
}

/* ---- functions ---- */

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

static bool set_function(JNIEnv *env, jclass class, const struct native *native, uintptr_t function)
{
	const JNINativeMethod method = {native->name, native->type, (void *)function};

	if (jvm.version >= 15)
		return registering_quietly(env, class, &method);
	return !(*env)->RegisterNatives(env, class, &method, 1);
}

void JNICALL natives_on_bind(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, void *address,
			     void **new_address)
{
	struct native *native = find(method);

	(void)jvmti, (void)env, (void)thread;
	if (!native || (uintptr_t)address == call_of(native) ||
	    __atomic_load_n(&native->id, __ATOMIC_ACQUIRE) == PROBE_NONE)
		return;
	__atomic_store_n(&native->function, (uintptr_t)address, __ATOMIC_RELEASE);
	*new_address = (void *)call_of(native);
}

/* ---- beginning and end ---- */

static bool set_bind_event(jvmtiEventMode mode)
{
	return !(*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_NATIVE_METHOD_BIND, NULL);
}

bool natives_open(JNIEnv *env, jclass helper)
{
	jmethodID never = (*env)->GetStaticMethodID(env, helper, PROBE_NEVER, "()V");

	(*env)->ExceptionClear(env);
	if (!all.method_bytes)
		all.method_bytes = vmstructs_type_bytes("Method");
	if (never && !all.unbound)
		all.unbound = read_function(never);
	return all.unbound && set_bind_event(JVMTI_ENABLE);
}

bool natives_add(JNIEnv *env, jclass class, jmethodID method, int32_t id, bool is_new)
{
	struct native *native = find(method);
	uintptr_t function;

	if (!all.unbound)
		return false;
	if (!native)
		native = take_place(env, class, method);
	if (!native)
		return false;
	__atomic_store_n(&native->id, id, __ATOMIC_RELEASE); /* from now on natives_on_bind() sees it */
	function = is_new ? all.unbound : read_function(method);
	if (function == all.unbound || function == call_of(native))
		return true;
	if (function)
		__atomic_store_n(&native->function, function, __ATOMIC_RELEASE);
	if (function && set_function(env, class, native, call_of(native)))
		return true;
	__atomic_store_n(&native->id, PROBE_NONE, __ATOMIC_RELEASE);
	return false;
}

static void give_back(JNIEnv *env, struct native *native)
{
	jclass class = (*env)->NewLocalRef(env, native->class);
	uintptr_t function = __atomic_load_n(&native->function, __ATOMIC_ACQUIRE);

	if (class && function && read_function(native->method) == call_of(native))
		(void)set_function(env, class, native, function);
	(*env)->DeleteLocalRef(env, class);
}

void natives_remove(JNIEnv *env)
{
	set_bind_event(JVMTI_DISABLE);
	for (size_t i = 0; i < NATIVE_CALLS && natives[i].method; i++) {
		if (__atomic_exchange_n(&natives[i].id, PROBE_NONE, __ATOMIC_ACQ_REL) != PROBE_NONE)
			give_back(env, &natives[i]);
	}
}
