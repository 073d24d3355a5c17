/* SPDX-License-Identifier: MIT */
#include "jvm/jvm.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "hotspot/vmstructs.h"
#include "jvm/code.h"
#include "jvm/stay.h"
#include "libc_versions.h"
#include "memory.h"
#include "tap.h"

/* HotSpot's own limit for one JNI local frame (MaxJNILocalCapacity). */
#define LOCAL_REFS_MAX 65536
#define LOCAL_REFS 16
#define PLANNED_REFS 32
#define CLASSES_AT_ONCE 64 /* takes less than a millisecond */

struct agent_jvm jvm;
static void *libjvm;

/*
 * Enabled only while a stay is open: the agent costs nothing between stays. ClassLoad has its callback from a tap. It
 * is always enabled, because AsyncGetCallTrace returns -1 unless an agent listens to it.
 */
static const jvmtiEvent stay_events[] = {
	JVMTI_EVENT_CLASS_LOAD,		  JVMTI_EVENT_CLASS_PREPARE,
	JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
	JVMTI_EVENT_THREAD_START,	  JVMTI_EVENT_THREAD_END,
};

bool jvm_set_event(jvmtiEventMode mode, jvmtiEvent event)
{
	return !(*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, event, NULL);
}

void jvm_events(jvmtiEventMode mode)
{
	if (!jvm.jvmti)
		return;
	for (size_t i = 0; i < sizeof(stay_events) / sizeof(stay_events[0]); i++)
		jvm_set_event(mode, stay_events[i]);
	if (mode == JVMTI_ENABLE && code_has_stub_events())
		jvm_set_event(JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
}

#define START_STEP_NS 5000000
#define START_STEPS 400

/*
 * Returns the JVMTI environment. HotSpot's attach listener accepts requests before the JVM's start is complete, and
 * GetEnv() returns JNI_EDETACHED until then, for milliseconds, or longer with class loaders of a program's: waits 2 s.
 */
static bool get_jvmti(JavaVM *vm, jvmtiEnv **ret)
{
	const struct timespec step = {.tv_nsec = START_STEP_NS};
	jint err = (*vm)->GetEnv(vm, (void **)ret, JVMTI_VERSION_1_1);

	for (int i = 0; i < START_STEPS && err == JNI_EDETACHED; i++) {
		nanosleep(&step, NULL);
		err = (*vm)->GetEnv(vm, (void **)ret, JVMTI_VERSION_1_1);
	}
	return !err;
}

/*
 * The events that must be on before main() when the agent is loaded at start. One is CompiledMethodLoad: while an agent
 * listens to it, the compilers record which inlined method each instruction belongs to (as with DebugNonSafepoints).
 * Code that was compiled before an attach has that record at safepoints only.
 */
static const jvmtiEvent start_events[] = {
	JVMTI_EVENT_VM_INIT,
	JVMTI_EVENT_CLASS_LOAD,
	JVMTI_EVENT_CLASS_PREPARE,
	JVMTI_EVENT_COMPILED_METHOD_LOAD,
	JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
};

int jvm_open(JavaVM *vm, const jvmtiEventCallbacks *callbacks, bool at_start)
{
	const jvmtiCapabilities wanted = {
		.can_get_source_file_name = 1,
		.can_get_line_numbers = 1,
		.can_generate_compiled_method_load_events = 1,
	};
	jvmtiEnv *jvmti;
	Dl_info info;

	if (jvm.jvmti)
		return 0;
	if (!get_jvmti(vm, &jvmti))
		return -ENOTSUP;
	if ((*jvmti)->AddCapabilities(jvmti, &wanted) ||
	    (*jvmti)->SetEventCallbacks(jvmti, callbacks, sizeof(*callbacks))) {
		(*jvmti)->DisposeEnvironment(jvmti);
		return -ENOTSUP;
	}
	jvm.vm = vm;
	jvm.jvmti = jvmti;
	jvm.at_start = at_start;
	/* however it was loaded; never closed: libjvm never leaves the process */
	if (dladdr((const void *)(uintptr_t)(*vm)->GetEnv, &info) && info.dli_fname)
		libjvm = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (libjvm)
		jvm.asgct = (asgct_function)(uintptr_t)dlsym(libjvm, "AsyncGetCallTrace");
	jvm_set_event(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH);
	for (size_t i = 0; at_start && i < sizeof(start_events) / sizeof(start_events[0]); i++)
		jvm_set_event(JVMTI_ENABLE, start_events[i]);
	return 0;
}

void jvm_set_alloc_interval(uint32_t bytes)
{
	const jvmtiCapabilities needs = {.can_generate_sampled_object_alloc_events = 1};

	if (bytes > INT_MAX || (*jvm.jvmti)->AddCapabilities(jvm.jvmti, &needs))
		return;
	(void)(*jvm.jvmti)->SetHeapSamplingInterval(jvm.jvmti, (jint)bytes);
	(void)(*jvm.jvmti)->RelinquishCapabilities(jvm.jvmti, &needs);
}

/* Finds the pthread key under which HotSpot keeps the current Thread, besides its thread-local variable. */
static bool find_thread_key(uintptr_t java_thread)
{
	for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
		if ((uintptr_t)pthread_getspecific(key) == java_thread) {
			jvm.thread_key = key;
			return true;
		}
	}
	return false;
}

static uintptr_t own_java_thread(JNIEnv *env)
{
	jthread thread = NULL;

	jvm.eetop = jvm_field(env, "java/lang/Thread", "eetop", "J");
	jvm.thread_id = jvm_field(env, "java/lang/Thread", "tid", "J");
	if (!jvm.eetop || (*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &thread) || !thread)
		return 0;
	return jvm_java_thread(env, thread);
}

/* An instance field's id is its offset, shifted left past two tag bits (jfieldIDWorkaround). */
static uint16_t field_offset(JNIEnv *env, const char *class_name, const char *name, const char *type)
{
	uintptr_t id = (uintptr_t)jvm_field(env, class_name, name, type);

	return id && id >> 2 < DUET_MAX_OFFSET ? (uint16_t)(id >> 2) : DUET_JVM_NO_FIELD;
}

/* Finds the layout of virtual threads by this thread's name and id, and the fields of Java objects that hold them. */
static void learn_virtual_threads(JNIEnv *env, uintptr_t java_thread)
{
	struct virtual_witness witness = {.java_thread = java_thread};
	jvmtiThreadInfo info = {0};
	jthread thread = NULL;

	if (!jvm.thread_id || (*jvm.jvmti)->GetCurrentThread(jvm.jvmti, &thread) ||
	    (*jvm.jvmti)->GetThreadInfo(jvm.jvmti, thread, &info))
		return;
	witness.id = (uint64_t)(*env)->GetLongField(env, thread, jvm.thread_id);
	witness.name = info.name ? info.name : "";
	witness.object_id = field_offset(env, "java/lang/Thread", "tid", "J");
	witness.object_name = field_offset(env, "java/lang/Thread", "name", "Ljava/lang/String;");
	witness.string_value = field_offset(env, "java/lang/String", "value", "[B");
	witness.string_coder = field_offset(env, "java/lang/String", "coder", "B");
	virtual_threads_learn(&witness, &jvm.virtual_threads);
	jvm_deallocate(info.name);
}

void jvm_learn(JNIEnv *env)
{
	uintptr_t java_thread;
	char version[16];

	if (jvm.version || (*env)->PushLocalFrame(env, LOCAL_REFS))
		return;
	jvm_property("java.vm.specification.version", version, sizeof(version));
	jvm.version = atoi(!strncmp(version, "1.", 2) ? version + 2 : version); /* "1.8" is 8, "17" is 17 */
	memory_open(libjvm);
	if (!jvmstructs_open()) {
		jvm.checks_jni = jvmflags_is_set("CheckJNICalls");
		jvm.reads_methods = metadata_open(jvm.version, false);
		nmethods_open(jvm.version);
	}
	java_thread = own_java_thread(env);
	if (jvm.asgct && java_thread && find_thread_key(java_thread)) {
		jvm.env_offset = (intptr_t)env - (intptr_t)java_thread;
		jvm.thread_vtable = *(const uintptr_t *)java_thread;
	} else {
		jvm.asgct = NULL;
	}
	if (java_thread && jvm.version >= 21)
		learn_virtual_threads(env, java_thread);
	(*env)->PopLocalFrame(env, NULL);
}

/*
 * Does not call GetEnv(), which reads a thread-local variable of libjvm. glibc allocates that with malloc() at a
 * thread's first access, and a thread interrupted in malloc() would wait for itself. pthread_getspecific() only loads.
 */
uintptr_t jvm_own_thread(void)
{
	return jvm.thread_vtable ? (uintptr_t)pthread_getspecific(jvm.thread_key) : 0;
}

uintptr_t jvm_current_thread(void)
{
	uintptr_t thread = jvm_own_thread();

	return thread && *(const uintptr_t *)thread == jvm.thread_vtable ? thread : 0;
}

/* HotSpot plans for 32 references, and counts anew only for a capacity that is larger (jniCheck.cpp). */
void jvm_expect_references(JNIEnv *env)
{
	if (jvm.checks_jni)
		(void)(*env)->EnsureLocalCapacity(env, PLANNED_REFS + 1);
}

void jvm_prepare_class(jclass class)
{
	jmethodID *methods;
	jint count;

	if (!(*jvm.jvmti)->GetClassMethods(jvm.jvmti, class, &count, &methods))
		jvm_deallocate(methods);
}

bool jvm_prepare_begin(JNIEnv *env, struct jvm_preparing *ret)
{
	*ret = (struct jvm_preparing){0};
	if ((*env)->PushLocalFrame(env, LOCAL_REFS_MAX)) {
		(*env)->ExceptionClear(env);
		return false;
	}
	if (!(*jvm.jvmti)->GetLoadedClasses(jvm.jvmti, &ret->count, &ret->classes))
		return true;
	(*env)->PopLocalFrame(env, NULL);
	return false;
}

bool jvm_prepare_some(struct jvm_preparing *preparing)
{
	for (int i = 0; i < CLASSES_AT_ONCE && preparing->done < preparing->count; i++)
		jvm_prepare_class(preparing->classes[preparing->done++]);
	return preparing->done < preparing->count;
}

void jvm_prepare_end(JNIEnv *env, struct jvm_preparing *preparing)
{
	jvm_deallocate(preparing->classes);
	(*env)->PopLocalFrame(env, NULL);
}

void jvm_property(const char *name, char *text, size_t size)
{
	char *value = NULL;

	text[0] = '\0';
	if (!jvm.jvmti || (*jvm.jvmti)->GetSystemProperty(jvm.jvmti, name, &value))
		return;
	strncat(text, value, size - 1);
	jvm_deallocate(value);
}

uintptr_t jvm_java_thread(JNIEnv *env, jthread thread)
{
	return jvm.eetop ? (uintptr_t)(*env)->GetLongField(env, thread, jvm.eetop) : 0;
}

JNIEnv *jvm_own_env(void)
{
	JNIEnv *env = NULL;

	return (*jvm.vm)->GetEnv(jvm.vm, (void **)&env, JNI_VERSION_1_6) ? NULL : env;
}

jfieldID jvm_field(JNIEnv *env, const char *class_name, const char *name, const char *type)
{
	jclass class = (*env)->FindClass(env, class_name);
	jfieldID field = class ? (*env)->GetFieldID(env, class, name, type) : NULL;

	(*env)->ExceptionClear(env);
	(*env)->DeleteLocalRef(env, class);
	return field;
}

char *jvm_class_signature(jclass class)
{
	char *signature = NULL;

	return (*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &signature, NULL) ? NULL : signature;
}

void jvm_deallocate(void *memory)
{
	if (memory)
		(*jvm.jvmti)->Deallocate(jvm.jvmti, memory);
}

/* A name that the loader has been sent: its hash, by tid. Open addressing, tid 0 = free. */
struct known_thread {
	int tid;
	uint32_t name_hash;
};

static struct {
	struct known_thread *slots;
	size_t mask;
} known;

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u;

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 16777619u;
	return hash;
}

static struct known_thread *find_known(struct known_thread *slots, size_t mask, int tid)
{
	size_t i = (size_t)tid & mask;

	while (slots[i].tid && slots[i].tid != tid)
		i = (i + 1) & mask;
	return &slots[i];
}

/* Without a name, the thread has ended. */
static void write_thread(struct stay *stay, int tid, uint64_t java_id, const char *name, enum ring_when_full when_full)
{
	struct duet_thread record = {
		.time_ns = clock_ns(),
		.java_id = java_id,
		.tid = (uint32_t)tid,
		.name_len = name ? (uint16_t)strnlen(name, UINT16_MAX) : 0,
		.ended = !name,
	};
	struct ring_part parts[] = {{&record, sizeof(record)}, {name, record.name_len}};

	ring_write(&stay->ring, DUET_AGENT_THREAD, parts, 2, when_full);
}

static uint64_t java_id(JNIEnv *env, jthread thread)
{
	return jvm.thread_id ? (uint64_t)(*env)->GetLongField(env, thread, jvm.thread_id) : 0;
}

/* Returns the thread's name, which the caller frees with jvm_deallocate(), or NULL. Needs a local frame. */
static char *thread_name(jthread thread)
{
	jvmtiThreadInfo info = {0};

	return (*jvm.jvmti)->GetThreadInfo(jvm.jvmti, thread, &info) ? NULL : info.name;
}

void JNICALL threads_on_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	STAY(stay);
	int tid = (int)syscall(SYS_gettid);
	char *name;

	jvm_expect_references(env);
	if (!stay || (*env)->PushLocalFrame(env, LOCAL_REFS))
		return;
	if (stay->engine->thread_start)
		stay->engine->thread_start(tid);
	taps_note_thread(tid, jvm_java_thread(env, thread));
	name = thread_name(thread);
	if (name)
		write_thread(stay, tid, java_id(env, thread), name, RING_DROP);
	jvm_deallocate(name);
	(*env)->PopLocalFrame(env, NULL);
}

void JNICALL threads_on_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	STAY(stay);
	int tid = (int)syscall(SYS_gettid);

	if (!stay)
		return;
	if (stay->engine->thread_end)
		stay->engine->thread_end(tid);
	taps_note_thread(tid, 0);
	write_thread(stay, tid, 0, NULL, RING_DROP);
}

/*
 * GetAllThreads' references keep the Java object alive, but not its JavaThread. The JVM clears eetop before it frees
 * the JavaThread. So if eetop has not changed afterwards, the JavaThread was alive while it was read.
 */
static int thread_id(JNIEnv *env, jthread thread)
{
	uintptr_t java_thread = jvm_java_thread(env, thread);
	int tid = jvmstructs_thread_id(java_thread);

	return java_thread == jvm_java_thread(env, thread) ? tid : 0;
}

static void sweep_one(struct stay *stay, JNIEnv *env, jthread thread, struct known_thread *slots, size_t mask)
{
	uintptr_t java_thread = jvm_java_thread(env, thread); /* 0 by now if it has ended */
	int tid = thread_id(env, thread);
	char *name = tid > 0 ? thread_name(thread) : NULL;
	struct known_thread *old, *new;
	uint32_t hash;

	if (tid > 0 && java_thread)
		taps_note_thread(tid, java_thread);
	if (!name)
		return;
	hash = hash_name(name);
	old = known.slots ? find_known(known.slots, known.mask, tid) : NULL;
	if (!old || old->tid != tid || old->name_hash != hash)
		write_thread(stay, tid, java_id(env, thread), name, RING_WAIT);
	new = find_known(slots, mask, tid);
	*new = (struct known_thread){tid, hash};
	jvm_deallocate(name);
}

/* Builds a new table each time, so that ended threads disappear from it. */
static void sweep_all(struct stay *stay, JNIEnv *env, const jthread *threads, jint count)
{
	struct known_thread *slots;
	size_t size = 64;

	while (size < 2 * (size_t)count)
		size *= 2;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return;
	for (jint i = 0; i < count; i++) {
		if ((*env)->PushLocalFrame(env, LOCAL_REFS))
			break;
		sweep_one(stay, env, threads[i], slots, size - 1);
		(*env)->PopLocalFrame(env, NULL);
	}
	free(known.slots);
	known.slots = slots;
	known.mask = size - 1;
}

void threads_sweep(struct stay *stay, JNIEnv *env)
{
	jthread *threads;
	jint count;

	if ((*env)->PushLocalFrame(env, LOCAL_REFS_MAX))
		return (*env)->ExceptionClear(env);
	if (!(*jvm.jvmti)->GetAllThreads(jvm.jvmti, &count, &threads)) {
		sweep_all(stay, env, threads, count);
		jvm_deallocate(threads);
	}
	(*env)->PopLocalFrame(env, NULL);
}

void threads_forget(void)
{
	free(known.slots);
	known.slots = NULL;
}
