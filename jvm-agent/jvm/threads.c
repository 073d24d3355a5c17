/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine.h"
#include "hotspot/clock.h"
#include "hotspot/jvmstructs.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"

#define LOCAL_REFS 8
#define LOCAL_REFS_MAX 65536

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

static void write_thread(struct stay *stay, int tid, const char *name, bool ended, enum ring_when_full when_full)
{
	struct duet_thread record = {
		.time_ns = clock_ns(),
		.tid = (uint32_t)tid,
		.name_len = (uint16_t)strnlen(name, UINT16_MAX),
		.ended = ended,
	};
	struct ring_part parts[] = {{&record, sizeof(record)}, {name, record.name_len}};

	ring_write(&stay->ring, DUET_AGENT_THREAD, parts, 2, when_full);
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
	name = thread_name(thread);
	if (name)
		write_thread(stay, tid, name, false, RING_DROP);
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
	write_thread(stay, tid, "", true, RING_DROP);
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
	int tid = thread_id(env, thread);
	char *name = tid > 0 ? thread_name(thread) : NULL;
	struct known_thread *old, *new;
	uint32_t hash;

	if (!name)
		return;
	hash = hash_name(name);
	old = known.slots ? find_known(known.slots, known.mask, tid) : NULL;
	if (!old || old->tid != tid || old->name_hash != hash)
		write_thread(stay, tid, name, false, RING_WAIT);
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
