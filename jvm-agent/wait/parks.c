/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "method/natives.h"
#include "wait/monitors.h"
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

struct parked {
	struct wait_event *event; /* NULL: no event wants this park */
	uint64_t key;
};

static const struct park_listener *listener_for(const char *class_name)
{
	for (int i = 0; i < LISTENERS; i++) {
		const struct park_listener *listener = __atomic_load_n(&parks.listeners[i], __ATOMIC_ACQUIRE);

		if (listener && tap_event_is_open(&listener->event->tap) && listener->wants(class_name))
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
	STAY(stay);
	struct parked parked = {0};
	jthread thread = NULL;

	if (stay && !(*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &thread) && thread) {
		parked = park_of(stay, env, thread, true);
		(*env)->DeleteLocalRef(env, thread);
	}
	return parked;
}

/* The thread goes on to take the lock, so other threads wait while this runs. */
static void park_ends(const struct parked *parked)
{
	STAY(stay);

	if (stay && tap_event_is_open(&parked->event->tap))
		wait_ends(parked->event, stay, parked->key);
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

/* It does not call Unsafe.park(), but JVMTI reports when it leaves its carrier, and when it has one again. */
#define FIRST_VERSION 21 /* with virtual threads that are not a preview */
#define CAPABILITY 43 /* the bit can_support_virtual_threads of jvmtiCapabilities, which jvmti.h has since JDK 21 */
#define NONE (-1)

/* Names of the states of java.lang.VirtualThread in which it is about to park. JDK 21 has only the first. */
static const char *const parking[] = {"PARKING", "TIMED_PARKING"};

#define STATES (sizeof(parking) / sizeof(parking[0]))

/* Set by the first thread that parks; several may set them at the same time, to the same. */
static struct {
	jfieldID state; /* java.lang.VirtualThread.state; atomic, set last */
	jint values[STATES]; /* NONE: this JVM has no such state */
} seen;

/* The class is initialized, because there is such a thread. That may be expensive, so it is not done before. */
static jfieldID learn(JNIEnv *env, jthread thread)
{
	jclass class = (*env)->GetObjectClass(env, thread);
	jfieldID state = (*env)->GetFieldID(env, class, "state", "I");

	(*env)->ExceptionClear(env);
	for (size_t i = 0; i < STATES; i++) {
		jfieldID field = (*env)->GetStaticFieldID(env, class, parking[i], "I");
		jint value = field ? (*env)->GetStaticIntField(env, class, field) : NONE;

		(*env)->ExceptionClear(env);
		__atomic_store_n(&seen.values[i], value, __ATOMIC_RELAXED);
	}
	(*env)->DeleteLocalRef(env, class);
	__atomic_store_n(&seen.state, state, __ATOMIC_RELEASE);
	return state;
}

/* It also leaves its carrier when it yields, ends, or waits for a monitor, which JVMTI reports in another way. */
static bool is_parking(JNIEnv *env, jthread thread)
{
	jfieldID field = __atomic_load_n(&seen.state, __ATOMIC_ACQUIRE);
	jint state;

	if (!field)
		field = learn(env, thread);
	state = field ? (*env)->GetIntField(env, thread, field) : NONE;
	for (size_t i = 0; state != NONE && i < STATES; i++)
		if (state == __atomic_load_n(&seen.values[i], __ATOMIC_RELAXED))
			return true;
	return false;
}

static void JNICALL on_unmount(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	STAY(stay);

	jvm_expect_references(env);
	if (stay && is_parking(env, thread))
		(void)park_of(stay, env, thread, false);
}

/* Whatever it did without its carrier: only a park is known under its key. */
static void end_parks(struct stay *stay, uint64_t key)
{
	for (int i = 0; i < LISTENERS && key; i++) {
		const struct park_listener *listener = __atomic_load_n(&parks.listeners[i], __ATOMIC_ACQUIRE);

		if (listener && tap_event_is_open(&listener->event->tap))
			wait_ends(listener->event, stay, key);
	}
}

static void JNICALL on_mount(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	STAY(stay);

	jvm_expect_references(env);
	if (stay)
		end_parks(stay, wait_key(env, thread));
}

static const struct {
	const char *id;
	jvmtiExtensionEvent callback;
} events[] = {
	{"com.sun.hotspot.events.VirtualThreadUnmount", (jvmtiExtensionEvent)(uintptr_t)on_unmount},
	{"com.sun.hotspot.events.VirtualThreadMount", (jvmtiExtensionEvent)(uintptr_t)on_mount},
};

/* Both are needed: the JVM reports such an event when it has a callback and is enabled. */
static void set_event(const jvmtiExtensionEventInfo *event, bool is_on)
{
	jvmtiEvent number = (jvmtiEvent)event->extension_event_index;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (strcmp(event->id, events[i].id))
			continue;
		(void)(*jvm.jvmti)->SetExtensionEventCallback(jvm.jvmti, number, is_on ? events[i].callback : NULL);
		(void)jvm_set_event(is_on ? JVMTI_ENABLE : JVMTI_DISABLE, number);
	}
}

static void free_event(jvmtiExtensionEventInfo *event)
{
	for (jint i = 0; i < event->param_count; i++)
		jvm_deallocate(event->params[i].name);
	jvm_deallocate(event->params);
	jvm_deallocate(event->short_description);
	jvm_deallocate(event->id);
}

static void set_events(bool is_on)
{
	jvmtiExtensionEventInfo *all = NULL;
	jint count = 0;

	if ((*jvm.jvmti)->GetExtensionEvents(jvm.jvmti, &count, &all))
		return;
	for (jint i = 0; i < count; i++) {
		set_event(&all[i], is_on);
		free_event(&all[i]);
	}
	jvm_deallocate(all);
}

/* A JVM may not have virtual threads, or not report them. */
static void report_virtual_parks(bool is_on)
{
	jvmtiCapabilities needs = {0};

	((unsigned char *)&needs)[CAPABILITY / 8] = 1 << CAPABILITY % 8;
	if (jvm.version < FIRST_VERSION || (is_on && (*jvm.jvmti)->AddCapabilities(jvm.jvmti, &needs)))
		return;
	set_events(is_on);
	if (!is_on)
		(void)(*jvm.jvmti)->RelinquishCapabilities(jvm.jvmti, &needs);
}

/*
 * Unsafe.registerNatives() registers HotSpot's functions by calling RegisterNatives() of its thread's JNIEnv. For one
 * call, that function is this one. So it finds HotSpot's park(), and registers nothing.
 */
static jint JNICALL look_at_methods(JNIEnv *env, jclass class, const JNINativeMethod *methods, jint count)
{
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
		parks.blocker = jvm_field(env, "java/lang/Thread", "parkBlocker", "Ljava/lang/Object;");
	if (!env || !parks.blocker)
		return -ENOTSUP;
	if (!has_listeners() && !take_park(env))
		return -ENOTSUP;
	if (!has_listeners())
		report_virtual_parks(true);
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
		report_virtual_parks(false);
}
