/* SPDX-License-Identifier: MIT */
/*
 * Pauses in which the garbage collector works. The JVM calls the agent at the begin and at the end of a pause, on the
 * thread that collects. The stack is that of this thread: it shows which collection it is. Nothing of the JVM may be
 * called there, and the thread does not wait for room in the ring: it would make the pause longer.
 */
#include <errno.h>

#include "event/shared.h"
#include "hotspot/clock.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "sample/regs.h"
#include "sample/sample.h"
#include "tap.h"
#include "wait/waiting.h"

static struct tap_event gc;
static uint64_t pause_ns; /* its begin; 0: none that began in this recording. Pauses do not overlap. Atomic */

static void JNICALL on_start(jvmtiEnv *jvmti)
{
	__atomic_store_n(&pause_ns, clock_ns(), __ATOMIC_RELAXED);
}

static struct {
	uint32_t users;
	uint32_t count; /* atomic */
} collections;

uint32_t collections_count(void)
{
	return __atomic_load_n(&collections.count, __ATOMIC_RELAXED);
}

static void JNICALL on_finish(jvmtiEnv *jvmti)
{
	uint64_t begin_ns = __atomic_exchange_n(&pause_ns, 0, __ATOMIC_RELAXED);
	struct regs caller = REGS_OF_CALLER();
	struct tap_sample from = {.event = gc.index, .caller = &caller};
	STAY(stay);

	__atomic_fetch_add(&collections.count, 1, __ATOMIC_RELAXED);
	if (stay && begin_ns && tap_event_is_open(&gc))
		from.weight = wait_weight(clock_ns() - begin_ns, gc.every.interval, begin_ns);
	if (from.weight)
		sample_here(stay, &from);
}

static bool set_events(jvmtiEventMode mode)
{
	return jvm_set_event(mode, JVMTI_EVENT_GARBAGE_COLLECTION_START) &&
	       jvm_set_event(mode, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
}

bool collections_open(void)
{
	if (!collections.users && !set_events(JVMTI_ENABLE)) {
		set_events(JVMTI_DISABLE);
		return false;
	}
	collections.users++;
	return true;
}

void collections_close(void)
{
	if (!--collections.users)
		set_events(JVMTI_DISABLE);
}

static void gc_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	collections_close();
}

static int gc_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	*ret_why = "the JVM refuses to report garbage collections";
	if (!collections_open())
		return -ENOTSUP;
	__atomic_store_n(&pause_ns, 0, __ATOMIC_RELAXED);
	return 0;
}

const struct agent_tap tap_gc = {
	.kind = DUET_AGENT_EVENT_GC,
	.needs = {.can_generate_garbage_collection_events = 1},
	.refused = "another agent in this JVM has the events of garbage collections, and only one can",
	.callbacks = {.GarbageCollectionStart = on_start, .GarbageCollectionFinish = on_finish},
	.event = &gc,
	.start = gc_start,
	.stop = gc_stop,
};
