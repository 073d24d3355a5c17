/* SPDX-License-Identifier: MIT */
#include "probes.h"

#include <stdio.h>
#include <string.h>

#include "attributes.h"
#include "helper_class.h"
#include "jvm.h"
#include "one_in.h"
#include "rewrite.h"
#include "sample.h"
#include "stay.h"

#define HELPERS 16 /* copies of this library that one JVM may have loaded */
#define LOCAL_REFS 16

/* ---- samples ---- */

/*
 * An id is the number of the recording, and the event's index in it: so a method that was entered in an earlier
 * recording is told apart. All members are atomic.
 */
static struct {
	int32_t recording;
	struct {
		bool is_open;
		struct one_in every;
	} events[DUET_MAX_EVENTS];
} probes;

_Static_assert((DUET_MAX_EVENTS & (DUET_MAX_EVENTS - 1)) == 0, "the index is the lower part of an id");

static bool is_open(int32_t id)
{
	uint32_t index = (uint32_t)id % DUET_MAX_EVENTS;

	return __atomic_load_n(&probes.events[index].is_open, __ATOMIC_ACQUIRE) &&
	       (uint32_t)id / DUET_MAX_EVENTS == (uint32_t)__atomic_load_n(&probes.recording, __ATOMIC_RELAXED);
}

static bool is_due(int32_t id)
{
	return is_open(id) && one_in_is_due(&probes.events[(uint32_t)id % DUET_MAX_EVENTS].every);
}

static void take(struct stay *stay, int32_t id, uint64_t weight, const void *attributes, uint32_t attribute_bytes)
{
	uint32_t index = (uint32_t)id % DUET_MAX_EVENTS;
	struct tap_sample from = {
		.event = index,
		.weight = weight * probes.events[index].every.interval,
		.attributes = attributes,
		.attribute_bytes = attribute_bytes,
		.waits = true,
		.is_whole = true,
	};

	sample_here(stay, &from);
}

void probes_called(int32_t id)
{
	struct stay *stay = stay_enter();

	if (stay && is_due(id))
		take(stay, id, 1, NULL, 0);
	stay_leave();
}

static void JNICALL called(JNIEnv *env, jclass class, jint id)
{
	(void)env, (void)class;
	probes_called(id);
}

static void JNICALL timed(JNIEnv *env, jclass class, jlong duration_ns, jint id)
{
	struct stay *stay = stay_enter();

	(void)env, (void)class;
	if (stay && is_due(id))
		take(stay, id, duration_ns > 0 ? (uint64_t)duration_ns : 1, NULL, 0);
	stay_leave();
}

static void take_created(struct stay *stay, JNIEnv *env, jobject object, int32_t id)
{
	jclass class = (*env)->GetObjectClass(env, object);
	char *name = jvm_class_signature(class);
	struct class_attribute attribute;
	uint32_t bytes = class_attribute_set(&attribute, name);

	jvm_deallocate(name);
	(*env)->DeleteLocalRef(env, class);
	take(stay, id, 1, &attribute, bytes);
}

static void JNICALL created(JNIEnv *env, jclass class, jobject object, jint id)
{
	struct stay *stay = stay_enter();

	(void)class;
	if (stay && object && is_due(id))
		take_created(stay, env, object, id);
	stay_leave();
}

int32_t probes_add(const struct duet_agent_event *event)
{
	int32_t recording = __atomic_load_n(&probes.recording, __ATOMIC_RELAXED);

	probes.events[event->index].every = (struct one_in){.interval = event->interval};
	__atomic_store_n(&probes.events[event->index].is_open, true, __ATOMIC_RELEASE);
	return (int32_t)((uint32_t)recording * DUET_MAX_EVENTS + event->index);
}

void probes_close(void)
{
	for (uint32_t i = 0; i < DUET_MAX_EVENTS; i++)
		__atomic_store_n(&probes.events[i].is_open, false, __ATOMIC_RELEASE);
	__atomic_store_n(&probes.recording, (probes.recording + 1) & (INT32_MAX / DUET_MAX_EVENTS), __ATOMIC_RELAXED);
}

/* ---- the helper class ---- */

/* The preparation that the agent's thread is about to see, and its result. */
static struct {
	JNIEnv *env; /* NULL: none */
	jclass class;
	bool is_done;
	char name[32]; /* with slashes; empty until the class is ready */
} helper;

void probes_on_prepare(JNIEnv *env, jclass class)
{
	static const JNINativeMethod methods[] = {
		{(char *)PROBE_CALLED, (char *)PROBE_CALLED_TYPE, (void *)(uintptr_t)called},
		{(char *)PROBE_TIMED, (char *)PROBE_TIMED_TYPE, (void *)(uintptr_t)timed},
		{(char *)PROBE_CREATED, (char *)PROBE_CREATED_TYPE, (void *)(uintptr_t)created},
	};

	if (env != helper.env || !(*env)->IsSameObject(env, class, helper.class))
		return;
	helper.is_done = !(*env)->RegisterNatives(env, class, methods, sizeof(methods) / sizeof(methods[0]));
}

/* Defines the class under the first name that is free: another copy of this library may have one in this JVM. */
static jclass define(JNIEnv *env)
{
	struct class_writer file;
	jclass class = NULL;

	for (int i = 0; i < HELPERS && !class; i++) {
		file = (struct class_writer){0};
		snprintf(helper.name, sizeof(helper.name), DUET_HELPER_CLASS "%d", i);
		helper_class_write(helper.name, &file);
		if (!file.failed)
			class = (*env)->DefineClass(env, helper.name, NULL, (const jbyte *)file.bytes, (jsize)file.len);
		class_writer_free(&file);
		(*env)->ExceptionClear(env);
	}
	return class;
}

/*
 * Class.forName() prepares the class, and JVMTI calls probes_on_prepare(). When natives of the platform are registered
 * and the caller is not in the platform itself, JDK 15 and later print a warning to stdout (jni_RegisterNatives()).
 * There the caller is Class.forName().
 */
static void prepare(JNIEnv *env, jclass class)
{
	jclass classes = (*env)->FindClass(env, "java/lang/Class");
	jmethodID for_name = classes ? (*env)->GetStaticMethodID(env, classes, "forName",
								 "(Ljava/lang/String;ZLjava/lang/ClassLoader;)"
								 "Ljava/lang/Class;")
				     : NULL;
	char name[sizeof(helper.name)];
	jstring text;

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = helper.name[i] == '/' ? '.' : helper.name[i];
	text = for_name ? (*env)->NewStringUTF(env, name) : NULL;
	if (!text)
		return;
	helper.class = (*env)->NewGlobalRef(env, class); /* a callback must not use a local reference of its caller */
	helper.env = helper.class ? env : NULL;
	(*env)->CallStaticObjectMethod(env, classes, for_name, text, JNI_TRUE, NULL);
	helper.env = NULL;
	(*env)->DeleteGlobalRef(env, helper.class);
}

const char *probes_open(JNIEnv *env)
{
	jclass class;

	if (helper.is_done)
		return helper.name;
	if ((*env)->PushLocalFrame(env, LOCAL_REFS))
		return NULL;
	class = define(env);
	if (class)
		prepare(env, class);
	(*env)->ExceptionClear(env);
	(*env)->PopLocalFrame(env, NULL);
	return helper.is_done ? helper.name : NULL;
}
