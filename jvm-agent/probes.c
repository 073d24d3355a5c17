/* SPDX-License-Identifier: MIT */
#include "probes.h"

#include <stdio.h>
#include <string.h>

#include "attributes.h"
#include "clock.h"
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
 * An id is the event's index in the recording, and a hash of what is asked for: so a method that has kept a probe for
 * something else is told apart.
 */
static struct {
	int32_t id; /* PROBE_NONE: closed; atomic */
	uint64_t begin_ns; /* of the recording */
	struct one_in every;
} events[DUET_MAX_EVENTS] = {[0 ... DUET_MAX_EVENTS - 1] = {.id = PROBE_NONE}};

_Static_assert((DUET_MAX_EVENTS & (DUET_MAX_EVENTS - 1)) == 0, "the index is the lower part of an id");

static uint32_t index_of(int32_t id)
{
	return (uint32_t)id % DUET_MAX_EVENTS;
}

static bool is_due(int32_t id)
{
	return __atomic_load_n(&events[index_of(id)].id, __ATOMIC_ACQUIRE) == id &&
	       one_in_is_due(&events[index_of(id)].every);
}

static void take(struct stay *stay, int32_t id, uint64_t weight, const void *attributes, uint32_t attribute_bytes)
{
	struct tap_sample from = {
		.event = index_of(id),
		.weight = weight * events[index_of(id)].every.interval,
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

/* A method that was entered in an earlier recording is not of this one. */
static void JNICALL timed(JNIEnv *env, jclass class, jlong begin_ns, jlong duration_ns, jint id)
{
	struct stay *stay = stay_enter();

	(void)env, (void)class;
	if (stay && (uint64_t)begin_ns >= events[index_of(id)].begin_ns && is_due(id))
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

/* ---- the helper class ---- */

/* The preparation that the agent's thread is about to see, and its result. */
static struct {
	JNIEnv *env; /* NULL: none */
	jclass class;
	bool is_done;
	char name[32]; /* with slashes; empty until the class is ready */
	jlongArray thresholds; /* PROBE_THRESHOLDS; a global reference */
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
	(*env)->ExceptionClear(env);
	helper.env = NULL;
	(*env)->DeleteGlobalRef(env, helper.class);
}

static bool set_thresholds(JNIEnv *env, jclass class)
{
	jfieldID field = (*env)->GetStaticFieldID(env, class, PROBE_THRESHOLDS, PROBE_THRESHOLDS_TYPE);
	jlongArray array = field ? (*env)->NewLongArray(env, DUET_MAX_EVENTS) : NULL;

	helper.thresholds = array ? (*env)->NewGlobalRef(env, array) : NULL;
	if (helper.thresholds)
		(*env)->SetStaticObjectField(env, class, field, array);
	return helper.thresholds;
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
	if (helper.is_done)
		helper.is_done = set_thresholds(env, class);
	(*env)->ExceptionClear(env);
	(*env)->PopLocalFrame(env, NULL);
	return helper.is_done ? helper.name : NULL;
}

/* ---- beginning and end ---- */

static uint32_t hash_of(const struct duet_agent_event *event, enum probe_kind kind)
{
	uint64_t hash = kind;

	for (const char *at = event->target; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(hash >> 32);
}

int16_t probes_add(const struct duet_agent_event *event, enum probe_kind kind)
{
	int16_t id = (int16_t)((hash_of(event, kind) * DUET_MAX_EVENTS + event->index) & INT16_MAX);
	jlong threshold_ns = (jlong)event->threshold_ns;
	JNIEnv *env = jvm_own_env();

	(*env)->SetLongArrayRegion(env, helper.thresholds, (jsize)event->index, 1, &threshold_ns);
	events[event->index].every = (struct one_in){.interval = event->interval};
	events[event->index].begin_ns = clock_ns();
	__atomic_store_n(&events[event->index].id, id, __ATOMIC_RELEASE);
	return id;
}

void probes_close(void)
{
	for (uint32_t i = 0; i < DUET_MAX_EVENTS; i++)
		__atomic_store_n(&events[i].id, PROBE_NONE, __ATOMIC_RELEASE);
}

