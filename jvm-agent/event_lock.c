/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait to enter synchronized code. The JVM tells of those for which spinning did not suffice: before the
 * thread blocks, and when it has the lock. The stack is walked before, when the thread has nothing to do but wait. With
 * the lock held, it costs a copy: a walk there would make all others wait longer.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "jvm.h"
#include "sample.h"
#include "stay.h"
#include "tap.h"
#include "waits.h"

static struct {
	bool is_open; /* atomic: a callback may come late, when another recording has begun */
	uint32_t index;
	uint64_t interval;
} lock;

/* What follows a sample; `bytes` in all. */
struct attributes {
	struct duet_attribute class_head;
	char class_name[DUET_MAX_CLASS_BYTES];
};

/* Returns how many bytes of attributes there are. */
static uint32_t fill(struct attributes *to, const char *class_name)
{
	size_t len = class_name ? strnlen(class_name, sizeof(to->class_name)) : 0;

	*to = (struct attributes){.class_head = {.type = DUET_ATTRIBUTE_CLASS, .bytes = (uint16_t)len}};
	if (len)
		memcpy(to->class_name, class_name, len);
	return len ? duet_attribute_size((uint32_t)len) : 0;
}

/*
 * What a wait weighs; 0: it is not sampled. One as long as the interval or longer is sampled always. A shorter one is
 * sampled with a probability of its length through the interval, and weighs the interval. The low bits of the time at
 * which the wait began are random enough, once they are mixed.
 */
static uint64_t weight_of(uint64_t waited_ns, uint64_t interval, uint64_t begin_ns)
{
	uint64_t hash = (begin_ns ^ begin_ns >> 29) * 0xbf58476d1ce4e5b9ull;

	if (waited_ns >= interval)
		return waited_ns;
	hash = (hash ^ hash >> 32) * 0x94d049bb133111ebull;
	return (uint64_t)((unsigned __int128)(hash ^ hash >> 31) * interval >> 64) < waited_ns ? interval : 0;
}

/* A thread waits for one monitor at a time. A virtual thread may get it on another carrier, with the same id. */
static uint64_t key_of(JNIEnv *env, jthread thread)
{
	return (uint64_t)(*env)->GetLongField(env, thread, jvm.thread_id);
}

static struct sample_kept *keep(struct stay *stay, JNIEnv *env, jobject monitor)
{
	struct tap_sample from = {.event = lock.index};
	struct attributes attributes;
	char *class_name = NULL;
	jclass class = (*env)->GetObjectClass(env, monitor);

	if ((*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &class_name, NULL))
		class_name = NULL;
	(*env)->DeleteLocalRef(env, class);
	from.attributes = &attributes;
	from.attribute_bytes = fill(&attributes, class_name);
	jvm_deallocate(class_name);
	return sample_keep(stay, &from, malloc);
}

static void wait_begins(struct stay *stay, JNIEnv *env, jthread thread, jobject monitor)
{
	uint64_t key = key_of(env, thread);
	struct sample_kept *kept;

	free(waits_take(key)); /* of a wait whose end nobody told */
	kept = keep(stay, env, monitor);
	if (!kept || waits_put(key, kept))
		return;
	duet_ring_count(stay->ring.page, DUET_AGENT_NO_SLOT);
	free(kept);
}

/* The thread has the lock: this is time for which it is held. */
static void wait_ends(struct stay *stay, uint64_t key)
{
	struct sample_kept *kept = waits_take(key);
	uint64_t now_ns, weight;

	if (!kept)
		return;
	now_ns = clock_ns();
	weight = weight_of(now_ns - kept->begin_ns, lock.interval, kept->begin_ns);
	if (weight)
		sample_write_kept(stay, kept, now_ns, weight);
	free(kept);
}

static bool is_open(const struct stay *stay, jthread thread)
{
	return stay && thread && __atomic_load_n(&lock.is_open, __ATOMIC_ACQUIRE);
}

static void JNICALL on_enter(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject monitor)
{
	struct stay *stay = stay_enter();

	(void)jvmti;
	if (is_open(stay, thread))
		wait_begins(stay, env, thread, monitor);
	stay_leave();
}

static void JNICALL on_entered(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject monitor)
{
	struct stay *stay = stay_enter();

	(void)jvmti, (void)monitor;
	if (is_open(stay, thread))
		wait_ends(stay, key_of(env, thread));
	stay_leave();
}

static void lock_add_callbacks(jvmtiEventCallbacks *callbacks)
{
	callbacks->MonitorContendedEnter = on_enter;
	callbacks->MonitorContendedEntered = on_entered;
}

static bool set_events(jvmtiEventMode mode)
{
	jvmtiError enter, entered;

	enter = (*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_MONITOR_CONTENDED_ENTER, NULL);
	entered = (*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, mode, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED, NULL);
	return !enter && !entered;
}

static void lock_stop(void)
{
	__atomic_store_n(&lock.is_open, false, __ATOMIC_RELEASE);
	set_events(JVMTI_DISABLE);
	waits_forget(free);
}

/* No callback of an earlier recording runs any more. One may have put a sample after lock_stop(). */
static int lock_start(const struct duet_agent_event *event, const char **ret_why)
{
	*ret_why = "the JVM refuses to tell of locks";
	if (!jvm.thread_id)
		return -ENOTSUP;
	waits_forget(free);
	lock.index = event->index;
	lock.interval = event->interval;
	__atomic_store_n(&lock.is_open, true, __ATOMIC_RELEASE);
	if (set_events(JVMTI_ENABLE))
		return 0;
	lock_stop();
	return -ENOTSUP;
}

const struct agent_tap tap_lock = {
	.kind = DUET_AGENT_EVENT_LOCK,
	.first_version = 8,
	.needs = {.can_generate_monitor_events = 1},
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "another agent in this JVM has the events of locks, and only one can",
	.add_callbacks = lock_add_callbacks,
	.start = lock_start,
	.stop = lock_stop,
};
