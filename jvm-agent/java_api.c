/* SPDX-License-Identifier: MIT */
/* The natives of one.profiler.AsyncProfiler since 1.2; start0 by its signatures, of which 1.6 brought another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "api/profiler.h"
#include "hotspot/jvmstructs.h"
#include "jvm/jvm.h"

#define EVENT_MAX 1024
#define CALLERS 16 /* frames between JNI_OnLoad and the class that loads the library */
#define REPORT_MAX (1ull << 30) /* bytes of a report that becomes a Java object */

static void throw_text(JNIEnv *env, const char *class_name, const char *text)
{
	jclass class = (*env)->FindClass(env, class_name);

	if (class)
		(*env)->ThrowNew(env, class, text);
}

static void throw_answer(JNIEnv *env, const struct link_answer *answer)
{
	const char *class_name = "java/lang/IllegalStateException";

	if (answer->head.code == DUET_ANSWER_NOT_UNDERSTOOD)
		class_name = "java/lang/IllegalArgumentException";
	else if (answer->head.code == DUET_ANSWER_NO_FILE)
		class_name = "java/io/IOException";
	throw_text(env, class_name, link_reply(answer));
}

/* Reads the report. Returns its text, terminated and owned by the caller, or NULL. */
static char *read_report(int report, size_t *ret_bytes)
{
	off_t end = lseek(report, 0, SEEK_END);
	size_t bytes = 0;
	char *text;
	ssize_t more = 0;

	if (end < 0 || (unsigned long long)end > REPORT_MAX)
		return NULL;
	text = malloc((size_t)end + 1);
	while (text && bytes < (size_t)end &&
	       (more = pread(report, text + bytes, (size_t)end - bytes, (off_t)bytes)) > 0)
		bytes += (size_t)more;
	if (text)
		text[bytes] = '\0';
	*ret_bytes = bytes;
	return text;
}

/* Returns the answer's bytes, owned by the caller, or NULL after throwing. */
static char *take_text(JNIEnv *env, const char *command, size_t *ret_bytes)
{
	struct link_answer answer;
	char *text = NULL;

	profiler_execute(DUET_QUESTION_API, command, &answer);
	profiler_print_log(&answer);
	if (answer.head.code) {
		throw_answer(env, &answer);
	} else {
		*ret_bytes = answer.bytes - answer.head.log_bytes;
		text = answer.report >= 0 ? read_report(answer.report, ret_bytes) : strdup(link_reply(&answer));
		if (!text)
			throw_text(env, "java/lang/OutOfMemoryError", "no memory for the report");
	}
	link_answer_release(&answer);
	return text;
}

/* Java's constructor decodes UTF-8, which JNI's own strings are not. */
static jstring new_string(JNIEnv *env, const char *text, size_t bytes)
{
	jclass class = (*env)->FindClass(env, "java/lang/String");
	jmethodID make = class ? (*env)->GetMethodID(env, class, "<init>", "([BLjava/lang/String;)V") : NULL;
	jstring charset = make ? (*env)->NewStringUTF(env, "UTF-8") : NULL;
	jbyteArray array = charset ? (*env)->NewByteArray(env, (jsize)bytes) : NULL;

	if (!array)
		return NULL;
	(*env)->SetByteArrayRegion(env, array, 0, (jsize)bytes, (const jbyte *)text);
	return (*env)->NewObject(env, class, make, array, charset);
}

static jstring string_of(JNIEnv *env, const char *command)
{
	size_t bytes;
	char *text = take_text(env, command, &bytes);
	jstring result = text ? new_string(env, text, bytes) : NULL;

	free(text);
	return result;
}

/* Arguments are ASCII but for file names, whose bytes are kept unless they are beyond JNI's modified UTF-8. */
static char *copy_command(JNIEnv *env, jstring command)
{
	const char *text = command ? (*env)->GetStringUTFChars(env, command, NULL) : NULL;
	char *copy = text ? strdup(text) : NULL;

	if (text)
		(*env)->ReleaseStringUTFChars(env, command, text);
	else if (!command)
		throw_text(env, "java/lang/NullPointerException", "command");
	return copy;
}

static void execute(JNIEnv *env, const char *command)
{
	size_t bytes;

	free(take_text(env, command, &bytes));
}

/* The meaning of `interval` depends on the event, as async-profiler's start0 has it. */
static void compose_start(char *text, size_t size, const char *event, jlong interval, bool reset)
{
	const char *action = reset ? "start" : "resume";

	if (!strcmp(event, "alloc") || !strcmp(event, "lock"))
		snprintf(text, size, "%s,quiet,%s=%lld", action, event, (long long)interval);
	else if (interval)
		snprintf(text, size, "%s,quiet,event=%s,interval=%lld", action, event, (long long)interval);
	else
		snprintf(text, size, "%s,quiet,event=%s", action, event);
}

static void start(JNIEnv *env, jstring event, jlong interval, bool reset)
{
	char command[EVENT_MAX];
	char *name = copy_command(env, event);

	if (!name)
		return;
	compose_start(command, sizeof(command), name, interval, reset);
	free(name);
	execute(env, command);
}

#define UNUSED __attribute__((unused))
#define FUNCTION(name) Java_one_profiler_AsyncProfiler_##name
/* Declares the function, and begins its definition. */
#define NATIVE(type, name, ...) \
	JNIEXPORT type JNICALL FUNCTION(name)(JNIEnv *, jobject, ##__VA_ARGS__); \
	JNIEXPORT type JNICALL FUNCTION(name)(UNUSED JNIEnv *env, UNUSED jobject self, ##__VA_ARGS__)

NATIVE(void, start0__Ljava_lang_String_2JZ, jstring event, jlong interval, jboolean reset)
{
	start(env, event, interval, reset);
}

NATIVE(void, start0__Ljava_lang_String_2J, jstring event, jlong interval)
{
	start(env, event, interval, true);
}

NATIVE(void, stop0)
{
	execute(env, "stop");
}

NATIVE(jstring, execute0, jstring command)
{
	char *text = copy_command(env, command);
	jstring result = text ? string_of(env, text) : NULL;

	free(text);
	return result;
}

NATIVE(jbyteArray, execute1, jstring command)
{
	char *text = copy_command(env, command);
	size_t bytes = 0;
	char *report = text ? take_text(env, text, &bytes) : NULL;
	jbyteArray result = report ? (*env)->NewByteArray(env, (jsize)bytes) : NULL;

	if (result)
		(*env)->SetByteArrayRegion(env, result, 0, (jsize)bytes, (const jbyte *)report);
	free(report);
	free(text);
	return result;
}

NATIVE(jlong, getSamples)
{
	const struct duet_question question = {.kind = DUET_QUESTION_SAMPLES};
	struct link_answer answer;
	jlong samples;

	link_ask(&question, "", &answer);
	samples = answer.head.code ? 0 : strtoll(link_reply(&answer), NULL, 10);
	link_answer_release(&answer);
	return samples;
}

/* `thread`: NULL is the calling thread. */
NATIVE(void, filterThread0, jthread thread, jboolean enable)
{
	uintptr_t java_thread = thread ? jvm_java_thread(env, thread) : 0;
	int tid = thread ? 0 : (int)syscall(SYS_gettid);

	if (java_thread)
		tid = jvmstructs_thread_id(java_thread);
	if (tid > 0)
		profiler_choose(tid, enable);
}

/* 1.x: its counters are 0 for samples and 1 for the total. */
NATIVE(jstring, dumpCollapsed0, jint counter)
{
	return string_of(env, counter ? "dump,collapsed,total" : "dump,collapsed,samples");
}

static jstring dump_rows(JNIEnv *env, const char *format, jint rows)
{
	char command[64];

	if (rows > 0)
		snprintf(command, sizeof(command), "dump,%s=%d", format, (int)rows);
	else
		snprintf(command, sizeof(command), "dump,%s", format);
	return string_of(env, command);
}

NATIVE(jstring, dumpTraces0, jint rows)
{
	return dump_rows(env, "traces", rows);
}

NATIVE(jstring, dumpFlat0, jint rows)
{
	return dump_rows(env, "flat", rows);
}

NATIVE(jstring, version0)
{
	return (*env)->NewStringUTF(env, PROFILER_VERSION);
}

#define NAMED(name) ((void *)(uintptr_t)FUNCTION(name))

static const JNINativeMethod natives[] = {
	{(char *)"start0", (char *)"(Ljava/lang/String;JZ)V", NAMED(start0__Ljava_lang_String_2JZ)},
	{(char *)"start0", (char *)"(Ljava/lang/String;J)V", NAMED(start0__Ljava_lang_String_2J)},
	{(char *)"stop0", (char *)"()V", NAMED(stop0)},
	{(char *)"execute0", (char *)"(Ljava/lang/String;)Ljava/lang/String;", NAMED(execute0)},
	{(char *)"execute1", (char *)"(Ljava/lang/String;)[B", NAMED(execute1)},
	{(char *)"getSamples", (char *)"()J", NAMED(getSamples)},
	{(char *)"filterThread0", (char *)"(Ljava/lang/Thread;Z)V", NAMED(filterThread0)},
	{(char *)"dumpCollapsed0", (char *)"(I)Ljava/lang/String;", NAMED(dumpCollapsed0)},
	{(char *)"dumpTraces0", (char *)"(I)Ljava/lang/String;", NAMED(dumpTraces0)},
	{(char *)"dumpFlat0", (char *)"(I)Ljava/lang/String;", NAMED(dumpFlat0)},
	{(char *)"version0", (char *)"()Ljava/lang/String;", NAMED(version0)},
};

/* A version of the class has some of them; for the others RegisterNatives throws, and binds nothing. */
static void register_natives(JNIEnv *env, jclass class)
{
	for (size_t i = 0; i < sizeof(natives) / sizeof(natives[0]); i++)
		if ((*env)->RegisterNatives(env, class, &natives[i], 1))
			(*env)->ExceptionClear(env);
}

/* Its name may be any: JMH's is AsyncProfiler$JavaApi. All have this method; others have an exception thrown. */
static bool is_profiler_class(JNIEnv *env, jclass class)
{
	if ((*env)->GetMethodID(env, class, "execute0", "(Ljava/lang/String;)Ljava/lang/String;"))
		return true;
	(*env)->ExceptionClear(env);
	return false;
}

/* Libraries that contain the class have it in a package of their own. There the names of the functions do not bind. */
static void register_callers(JNIEnv *env)
{
	jvmtiFrameInfo frames[CALLERS];
	jint count;

	if ((*jvm.jvmti)->GetStackTrace(jvm.jvmti, NULL, 0, CALLERS, frames, &count))
		return;
	for (jint i = 0; i < count; i++) {
		jclass class;

		if ((*jvm.jvmti)->GetMethodDeclaringClass(jvm.jvmti, frames[i].method, &class))
			continue;
		if (is_profiler_class(env, class))
			register_natives(env, class);
		(*env)->DeleteLocalRef(env, class);
	}
}

/* Called by System.load(). Where JVMTI refuses, the agent does too; the methods still bind by name, and report it. */
JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
	JNIEnv *env;

	if (!callbacks_open(vm, false) && !(*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_6))
		register_callers(env);
	return JNI_VERSION_1_6;
}
