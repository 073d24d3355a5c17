/* SPDX-License-Identifier: MIT */
#include "method/probes.h"

#include <stdio.h>

#include "hotspot/clock.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "sample/sample.h"
#include "tap.h"

#define HELPERS 16 /* copies of this library that one JVM may have loaded */
#define LOCAL_REFS 16

/* The preparation that the agent's thread is about to see, and its result. */
static struct {
	JNIEnv *env; /* NULL: none */
	jclass class;
	bool is_done;
	char name[32]; /* with slashes; empty until the class is ready */
	jlongArray thresholds; /* PROBE_THRESHOLDS; a global reference */
	JNIEnv *tried; /* atomic: this thread makes a Throwable to see whether it has a probe; NULL: none does */
	bool is_tried; /* it has */
} helper;

/*
 * The lower part of an id is its place, the rest is a hash of what is asked for: so a method that has kept a probe for
 * something else is distinguished. The place is the event's index in the recording; that of PROBE_CREATE never changes.
 */
static struct {
	int32_t id; /* PROBE_NONE: closed; atomic */
	uint32_t index; /* of the event */
	uint64_t begin_ns; /* of the recording */
	struct one_in every;
} events[PROBE_PLACES] = {[0 ... PROBE_PLACES - 1] = {.id = PROBE_NONE}};

#define CREATE_PLACE DUET_MAX_EVENTS

_Static_assert(CREATE_PLACE < PROBE_PLACES, "each event has a place of its own");

static uint32_t place_of(int32_t id)
{
	return (uint32_t)id % PROBE_PLACES;
}

static bool is_due(int32_t id)
{
	return __atomic_load_n(&events[place_of(id)].id, __ATOMIC_ACQUIRE) == id &&
	       one_in_is_due(&events[place_of(id)].every);
}

static void take(struct stay *stay, int32_t id, uint64_t weight, const void *attributes, uint32_t attribute_bytes)
{
	struct tap_sample from = {
		.event = events[place_of(id)].index,
		.weight = weight * events[place_of(id)].every.interval,
		.attributes = attributes,
		.attribute_bytes = attribute_bytes,
		.waits = true,
		.is_whole = true,
	};

	sample_here(stay, &from);
}

void probes_called(int32_t id)
{
	STAY(stay);

	if (stay && is_due(id))
		take(stay, id, 1, NULL, 0);
}

static void JNICALL called(JNIEnv *env, jclass class, jint id)
{
	probes_called(id);
}

/* A method that was entered in an earlier recording is not of this one. */
static void JNICALL timed(JNIEnv *env, jclass class, jlong begin_ns, jlong duration_ns, jint id)
{
	STAY(stay);

	if (stay && (uint64_t)begin_ns >= events[place_of(id)].begin_ns && is_due(id))
		take(stay, id, duration_ns > 0 ? (uint64_t)duration_ns : 1, NULL, 0);
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

static void JNICALL made(JNIEnv *env, jclass class, jobject object, jint id)
{
	STAY(stay);

	if (env == __atomic_load_n(&helper.tried, __ATOMIC_RELAXED))
		helper.is_tried = true;
	else if (stay && object && is_due(id))
		take_created(stay, env, object, id);
}

void probes_on_prepare(JNIEnv *env, jclass class)
{
	static const JNINativeMethod methods[] = {
		{(char *)PROBE_CALLED, (char *)PROBE_CALLED_TYPE, (void *)(uintptr_t)called},
		{(char *)PROBE_TIMED, (char *)PROBE_TIMED_TYPE, (void *)(uintptr_t)timed},
		{(char *)PROBE_MADE, (char *)PROBE_CREATED_TYPE, (void *)(uintptr_t)made},
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
 * by a caller that is not, as Class.forName() is, JDK 15 and later print a warning to stdout (jni_RegisterNatives()).
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
	jlongArray array = field ? (*env)->NewLongArray(env, PROBE_PLACES) : NULL;

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

static uint32_t hash_of(const struct duet_agent_event *event, enum probe_kind kind)
{
	uint64_t hash = kind;

	for (const char *at = event->target; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(hash >> 32);
}

static void set_threshold(JNIEnv *env, uint32_t place, jlong threshold_ns)
{
	(*env)->SetLongArrayRegion(env, helper.thresholds, (jsize)place, 1, &threshold_ns);
}

int16_t probes_add(JNIEnv *env, const struct duet_agent_event *event, enum probe_kind kind)
{
	uint32_t place = kind == PROBE_CREATE ? CREATE_PLACE : event->index;
	int16_t id = (int16_t)((hash_of(event, kind) * PROBE_PLACES + place) & INT16_MAX);

	set_threshold(env, place, (jlong)event->threshold_ns);
	events[place].every = (struct one_in){.interval = event->interval};
	events[place].index = event->index;
	events[place].begin_ns = clock_ns();
	__atomic_store_n(&events[place].id, id, __ATOMIC_RELEASE);
	return id;
}

bool probes_has_create(JNIEnv *env)
{
	jclass class = (*env)->FindClass(env, "java/lang/Throwable");
	jmethodID constructor = class ? (*env)->GetMethodID(env, class, "<init>", "()V") : NULL;

	helper.is_tried = false;
	__atomic_store_n(&helper.tried, env, __ATOMIC_RELAXED);
	if (constructor)
		(*env)->DeleteLocalRef(env, (*env)->NewObject(env, class, constructor));
	__atomic_store_n(&helper.tried, NULL, __ATOMIC_RELAXED);
	(*env)->ExceptionClear(env);
	(*env)->DeleteLocalRef(env, class);
	return helper.is_tried;
}

void probes_close(JNIEnv *env)
{
	for (uint32_t i = 0; i < PROBE_PLACES; i++) {
		if (__atomic_exchange_n(&events[i].id, PROBE_NONE, __ATOMIC_RELEASE) != PROBE_NONE && env)
			set_threshold(env, i, INT64_MAX);
	}
}
