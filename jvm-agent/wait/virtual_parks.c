/* SPDX-License-Identifier: MIT */
#include "wait/virtual_parks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "jvm/jvm.h"
#include "jvm/stay.h"

#define FIRST_VERSION 21 /* with virtual threads that are not a preview */
#define CAPABILITY 43 /* the bit can_support_virtual_threads of jvmtiCapabilities, which jvmti.h has since JDK 21 */
#define NONE (-1)

/* Names of the states of java.lang.VirtualThread in which it is about to park. JDK 21 has only the first. */
static const char *const parking[] = {"PARKING", "TIMED_PARKING"};

#define STATES (sizeof(parking) / sizeof(parking[0]))

static struct {
	const struct virtual_parks *to; /* set before the JVM reports anything */
	/* The others are set by the first thread that parks; several may set them at the same time, to the same. */
	jfieldID state; /* java.lang.VirtualThread.state; atomic, set last */
	jint values[STATES]; /* NONE: this JVM has no such state */
} seen;

/* ---- a virtual thread that leaves its carrier ---- */

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
static bool parks(JNIEnv *env, jthread thread)
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
	struct stay *stay = stay_enter();

	(void)jvmti;
	jvm_expect_references(env);
	if (stay && parks(env, thread))
		seen.to->begins(stay, env, thread);
	stay_leave();
}

static void JNICALL on_mount(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	struct stay *stay = stay_enter();

	(void)jvmti;
	jvm_expect_references(env);
	if (stay)
		seen.to->ended(stay, env, thread);
	stay_leave();
}

/* ---- HotSpot's own events ---- */

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
		(void)(*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, is_on ? JVMTI_ENABLE : JVMTI_DISABLE, number,
							     NULL);
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

static jvmtiCapabilities needs(void)
{
	jvmtiCapabilities capabilities = {0};

	((unsigned char *)&capabilities)[CAPABILITY / 8] = 1 << CAPABILITY % 8;
	return capabilities;
}

void virtual_parks_open(const struct virtual_parks *to)
{
	jvmtiCapabilities wanted = needs();

	seen.to = to;
	if (jvm.version >= FIRST_VERSION && !(*jvm.jvmti)->AddCapabilities(jvm.jvmti, &wanted))
		set_events(true);
}

void virtual_parks_close(void)
{
	jvmtiCapabilities wanted = needs();

	if (jvm.version < FIRST_VERSION)
		return;
	set_events(false);
	(void)(*jvm.jvmti)->RelinquishCapabilities(jvm.jvmti, &wanted);
}
