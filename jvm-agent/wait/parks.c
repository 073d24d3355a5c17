/* SPDX-License-Identifier: MIT */
#include "wait/parks.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "method/registering.h"
#include "wait/virtual_parks.h"
#include "wait/waiting.h"

#define LISTENERS 2
#define LOCAL_REFS 16

typedef void(JNICALL *park_function)(JNIEnv *env, jobject unsafe, jboolean is_absolute, jlong time);

/* Read by all threads that park. An entry of `listeners` is set and cleared by atomic stores. */
static struct {
	const struct park_listener *listeners[LISTENERS];
	park_function hotspot; /* HotSpot's own function; set before the first call of ours, and never changed */
	jfieldID blocker; /* java.lang.Thread.parkBlocker */
} parks;

/* ---- a thread that parks ---- */

struct parked {
	struct wait_event *event; /* NULL: no event wants this park */
	uint64_t key;
};

static const struct park_listener *listener_for(const char *class_name)
{
	for (int i = 0; i < LISTENERS; i++) {
		const struct park_listener *listener = __atomic_load_n(&parks.listeners[i], __ATOMIC_ACQUIRE);

		if (listener && wait_event_is_open(listener->event) && listener->wants(class_name))
			return listener;
	}
	return NULL;
}

static struct parked park_of(struct stay *stay, JNIEnv *env, jthread thread, bool blocks_thread)
{
	jobject blocker = (*env)->GetObjectField(env, thread, parks.blocker);
	char *class_name = blocker ? wait_class(env, blocker) : NULL;
	const struct park_listener *listener = listener_for(class_name);
	struct parked parked = {0};
	struct wait_reason reason = {.class_name = class_name, .blocks_thread = blocks_thread};

	if (listener)
		parked = (struct parked){listener->event, wait_key(env, thread)};
	if (parked.key) {
		reason.is_virtual = wait_is_virtual(env, thread);
		reason.address = wait_address(blocker);
		reason.lock = blocker ? wait_lock(parked.event, blocker) : 0;
		wait_begins(parked.event, stay, parked.key, &reason);
	}
	jvm_deallocate(class_name);
	(*env)->DeleteLocalRef(env, blocker);
	return parked;
}

static struct parked park_begins(JNIEnv *env)
{
	struct stay *stay = stay_enter();
	struct parked parked = {0};
	jthread thread = NULL;

	if (stay && !(*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &thread) && thread) {
		parked = park_of(stay, env, thread, true);
		(*env)->DeleteLocalRef(env, thread);
	}
	stay_leave();
	return parked;
}

/* The thread goes on to take the lock, so other threads wait while this runs. */
static void park_ends(const struct parked *parked)
{
	struct stay *stay = stay_enter();

	if (stay && wait_event_is_open(parked->event))
		wait_ends(parked->event, stay, parked->key);
	stay_leave();
}

static bool has_listeners(void)
{
	for (int i = 0; i < LISTENERS; i++)
		if (__atomic_load_n(&parks.listeners[i], __ATOMIC_RELAXED))
			return true;
	return false;
}

static void JNICALL park(JNIEnv *env, jobject unsafe, jboolean is_absolute, jlong time)
{
	struct parked parked;

	if (!has_listeners()) {
		parks.hotspot(env, unsafe, is_absolute, time); /* the compiler makes it a jump: no frame of ours */
		return;
	}
	parked = park_begins(env);
	parks.hotspot(env, unsafe, is_absolute, time);
	if (parked.key)
		park_ends(&parked);
}

/* ---- a virtual thread that parks without its carrier ---- */

static void virtual_begins(struct stay *stay, JNIEnv *env, jthread thread)
{
	(void)park_of(stay, env, thread, false);
}

static void virtual_ended(struct stay *stay, JNIEnv *env, jthread thread)
{
	uint64_t key = wait_key(env, thread);

	for (int i = 0; i < LISTENERS && key; i++) {
		const struct park_listener *listener = __atomic_load_n(&parks.listeners[i], __ATOMIC_ACQUIRE);

		if (listener && wait_event_is_open(listener->event))
			wait_ends(listener->event, stay, key);
	}
}

static const struct virtual_parks virtual_parks = {virtual_begins, virtual_ended};

/* ---- the method ---- */

/*
 * Unsafe.registerNatives() registers HotSpot's functions by calling RegisterNatives() of its thread's JNIEnv. For one
 * call, that function is this one. So it finds HotSpot's park(), and registers nothing.
 */
static jint JNICALL look_at_methods(JNIEnv *env, jclass class, const JNINativeMethod *methods, jint count)
{
	(void)env, (void)class;
	for (jint i = 0; i < count; i++)
		if (!strcmp(methods[i].name, "park") && !strcmp(methods[i].signature, "(ZJ)V"))
			parks.hotspot = (park_function)(uintptr_t)methods[i].fnPtr;
	return 0;
}

static void find_hotspots(JNIEnv *env, jclass unsafe)
{
	jmethodID method = (*env)->GetStaticMethodID(env, unsafe, "registerNatives", "()V");
	const struct JNINativeInterface_ *usual = *env;
	struct JNINativeInterface_ ours = *usual;

	ours.RegisterNatives = look_at_methods;
	if (method) {
		*env = &ours;
		usual->CallStaticVoidMethod(env, unsafe, method);
		*env = usual;
	}
	(*env)->ExceptionClear(env);
}

/*
 * Makes Unsafe.park() our function, and leaves it so: HotSpot never frees the compiled wrapper of a native method whose
 * function is replaced (JDK-8369219), but does nothing when the function is the same. Called on the agent's thread.
 */
static bool take_park(JNIEnv *env)
{
	const JNINativeMethod method = {(char *)"park", (char *)"(ZJ)V", (void *)(uintptr_t)park};
	bool is_done = false;
	jclass unsafe;

	if ((*env)->PushLocalFrame(env, LOCAL_REFS))
		return false;
	unsafe = (*env)->FindClass(env, jvm.version < 9 ? "sun/misc/Unsafe" : "jdk/internal/misc/Unsafe");
	if (unsafe && !parks.hotspot)
		find_hotspots(env, unsafe);
	if (unsafe && parks.hotspot)
		is_done = registering_quietly(env, unsafe, &method);
	(*env)->ExceptionClear(env);
	(*env)->PopLocalFrame(env, NULL);
	return is_done;
}

static jfieldID find_blocker(JNIEnv *env)
{
	jclass class = (*env)->FindClass(env, "java/lang/Thread");
	jfieldID field = class ? (*env)->GetFieldID(env, class, "parkBlocker", "Ljava/lang/Object;") : NULL;

	(*env)->ExceptionClear(env);
	(*env)->DeleteLocalRef(env, class);
	return field;
}

static void add(const struct park_listener *listener)
{
	for (int i = 0; i < LISTENERS; i++) {
		if (parks.listeners[i])
			continue;
		__atomic_store_n(&parks.listeners[i], listener, __ATOMIC_RELEASE);
		return;
	}
}

int parks_open(const struct park_listener *listener)
{
	JNIEnv *env = jvm_own_env();

	if (env && !parks.blocker)
		parks.blocker = find_blocker(env);
	if (!env || !parks.blocker)
		return -ENOTSUP;
	if (!has_listeners() && !take_park(env))
		return -ENOTSUP;
	if (!has_listeners())
		virtual_parks_open(&virtual_parks);
	add(listener);
	return 0;
}

void parks_close(const struct park_listener *listener)
{
	bool had = has_listeners();

	for (int i = 0; i < LISTENERS; i++)
		if (parks.listeners[i] == listener)
			__atomic_store_n(&parks.listeners[i], NULL, __ATOMIC_RELEASE);
	if (had && !has_listeners())
		virtual_parks_close();
}
