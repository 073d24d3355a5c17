/* SPDX-License-Identifier: MIT */
/* Times that the program reports by one.profiler.Span: a tag and the thread, no stack. They weigh their length. */
#include <string.h>

#include "duet_record.h"
#include "hotspot/clock.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "locked.h"
#include "sample/newest.h"
#include "sample/sample.h"
#include "tap.h"

static struct tap_event spans;

struct span_attribute {
	struct duet_attribute head;
	char tag[DUET_MAX_SPAN_BYTES];
};
_Static_assert(DUET_MAX_SPAN_BYTES % 8 == 0, "an attribute is padded to 8");

/* The program may name any times. */
static uint64_t length_of(int64_t start_ns, int64_t *end_ns)
{
	int64_t now_ns = (int64_t)clock_ns();

	if (*end_ns > now_ns)
		*end_ns = now_ns;
	return start_ns > 0 && start_ns < *end_ns ? (uint64_t)(*end_ns - start_ns) : 1;
}

/* Adds a span of the calling thread. `tag` has at most DUET_MAX_SPAN_BYTES; 0 bytes: none. */
static void spans_add(int64_t start_ns, int64_t end_ns, const char *tag, size_t bytes)
{
	struct span_attribute attribute = {.head = {.type = DUET_ATTRIBUTE_SPAN, .bytes = (uint16_t)bytes}};
	struct tap_sample sample = {
		.event = spans.index,
		.attributes = &attribute,
		.attribute_bytes = duet_attribute_size((uint32_t)bytes),
	};
	STAY(stay);

	if (stay && tap_event_is_open(&spans) && bytes <= sizeof(attribute.tag)) {
		sample.weight = length_of(start_ns, &end_ns);
		if (bytes)
			memcpy(attribute.tag, tag, bytes);
		sample_without_stack(stay, &sample, end_ns > 0 ? (uint64_t)end_ns : 1);
	}
}

#define CLASS_NAME "one.profiler.Recording"
#define CHAR_BYTES 3 /* most bytes of a char in UTF-8 */

enum state { UNAVAILABLE, STOPPED, RUNNING }; /* values of Recording.state */

/* A program may have used the class before the library came: it is looked for when a recording begins. */
static struct {
	pthread_mutex_t lock;
	jclass class; /* a global reference, or NULL */
	jfieldID state;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

JNIEXPORT jint JNICALL Java_one_profiler_Recording_registerNatives(JNIEnv *env, jclass class);
JNIEXPORT jobject JNICALL Java_one_profiler_Recording_getThreadLocalBuffer(JNIEnv *env, jclass class);
JNIEXPORT void JNICALL Java_one_profiler_TraceContext_bind(JNIEnv *env, jclass class, jobject record);
JNIEXPORT void JNICALL Java_one_profiler_Recording_emitSpan(JNIEnv *env, jclass class, jlong start_ns, jlong end_ns,
							     jstring tag);

static enum state state_now(void)
{
	return tap_event_is_open(&spans) ? RUNNING : STOPPED;
}

/* Call with the lock held. A class of another library that has the same name is not kept. */
static void keep(JNIEnv *env, jclass class)
{
	jfieldID state = (*env)->GetStaticFieldID(env, class, "state", "I");

	if (!state)
		(*env)->ExceptionClear(env);
	if (!state || known.class)
		return;
	known.class = (*env)->NewGlobalRef(env, class);
	known.state = state;
}

JNIEXPORT jint JNICALL Java_one_profiler_Recording_registerNatives(JNIEnv *env, jclass class)
{
	LOCKED(&known.lock);

	keep(env, class);
	return state_now();
}

/* Without a buffer, the class reports all spans. */
JNIEXPORT jobject JNICALL Java_one_profiler_Recording_getThreadLocalBuffer(JNIEnv *env, jclass class)
{
	uint64_t *number = newest_here();

	return number ? (*env)->NewDirectByteBuffer(env, number, sizeof(*number)) : NULL;
}

/* Copies the beginning of the text. Returns its bytes. */
static size_t copy_tag(JNIEnv *env, jstring tag, char text[DUET_MAX_SPAN_BYTES + 1])
{
	jsize chars = tag ? (*env)->GetStringLength(env, tag) : 0;

	if (!chars)
		return 0;
	if ((*env)->GetStringUTFLength(env, tag) > DUET_MAX_SPAN_BYTES && chars > DUET_MAX_SPAN_BYTES / CHAR_BYTES)
		chars = DUET_MAX_SPAN_BYTES / CHAR_BYTES;
	memset(text, 0, DUET_MAX_SPAN_BYTES + 1);
	(*env)->GetStringUTFRegion(env, tag, 0, chars, text);
	return strlen(text);
}

JNIEXPORT void JNICALL Java_one_profiler_Recording_emitSpan(JNIEnv *env, jclass class, jlong start_ns, jlong end_ns,
							     jstring tag)
{
	char text[DUET_MAX_SPAN_BYTES + 1];

	if (tap_event_is_open(&spans))
		spans_add(start_ns, end_ns, text, copy_tag(env, tag, text));
}

/* The record is the thread's own: it lives as long as the thread's ThreadLocal. */
JNIEXPORT void JNICALL Java_one_profiler_TraceContext_bind(JNIEnv *env, jclass class, jobject record)
{
	void *at = (*env)->GetDirectBufferAddress(env, record);

	if (at && (*env)->GetDirectBufferCapacity(env, record) >= (jlong)sizeof(struct duet_context_record))
		context_set(at);
}

static const JNINativeMethod natives[] = {
	{(char *)"registerNatives", (char *)"()I", (void *)(uintptr_t)Java_one_profiler_Recording_registerNatives},
	{(char *)"getThreadLocalBuffer", (char *)"()Ljava/nio/ByteBuffer;",
	 (void *)(uintptr_t)Java_one_profiler_Recording_getThreadLocalBuffer},
	{(char *)"emitSpan", (char *)"(JJLjava/lang/String;)V",
	 (void *)(uintptr_t)Java_one_profiler_Recording_emitSpan},
};

/* Returns the result, or NULL if there was an exception. */
static jobject unless_thrown(JNIEnv *env, jobject result)
{
	if (!(*env)->ExceptionCheck(env))
		return result;
	(*env)->ExceptionClear(env);
	return NULL;
}

static jobject application_loader(JNIEnv *env, jclass loaders)
{
	jmethodID get =
		(*env)->GetStaticMethodID(env, loaders, "getSystemClassLoader", "()Ljava/lang/ClassLoader;");

	return get ? unless_thrown(env, (*env)->CallStaticObjectMethod(env, loaders, get)) : NULL;
}

/* Asks the class loader of the application without loading anything. Returns a local reference or NULL. */
static jclass find_loaded(JNIEnv *env)
{
	jclass loaders = (*env)->FindClass(env, "java/lang/ClassLoader");
	jobject loader = loaders ? application_loader(env, loaders) : NULL;
	jmethodID find = loader ? (*env)->GetMethodID(env, loaders, "findLoadedClass",
						      "(Ljava/lang/String;)Ljava/lang/Class;")
				: NULL;
	jstring name = find ? (*env)->NewStringUTF(env, CLASS_NAME) : NULL;

	return name ? unless_thrown(env, (*env)->CallObjectMethod(env, loader, find, name)) : NULL;
}

static bool is_initialized(jclass class)
{
	jint status;

	return !(*jvm.jvmti)->GetClassStatus(jvm.jvmti, class, &status) && status & JVMTI_CLASS_STATUS_INITIALIZED;
}

/* One that is not initialized yet binds its natives itself. */
static void bind_loaded(JNIEnv *env)
{
	jclass class = find_loaded(env);

	if (!class || !is_initialized(class))
		return;
	if ((*env)->RegisterNatives(env, class, natives, sizeof(natives) / sizeof(natives[0])))
		(*env)->ExceptionClear(env);
	else
		keep(env, class);
}

/* Sets the class's state, if it is loaded, to whether spans are recorded. On a thread attached to the JVM. */
static void recording_notify_state(void)
{
	JNIEnv *env = jvm_own_env();
	LOCKED(&known.lock);

	if (!env || (*env)->PushLocalFrame(env, 16))
		return;
	if (!known.class && tap_event_is_open(&spans))
		bind_loaded(env);
	if (known.class)
		(*env)->SetStaticIntField(env, known.class, known.state, state_now());
	(*env)->PopLocalFrame(env, NULL);
}

static int span_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	tap_event_open(&spans, event);
	recording_notify_state();
	return 0;
}

static void span_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	tap_event_close(&spans);
	recording_notify_state();
}

const struct agent_tap tap_span = {
	.kind = DUET_AGENT_EVENT_SPAN,
	.refused = "the JVM refuses it",
	.start = span_start,
	.stop = span_stop,
};
