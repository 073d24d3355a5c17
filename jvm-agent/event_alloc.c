/* SPDX-License-Identifier: MIT */
/*
 * Objects allocated in Java's heap. The JVM samples them (JEP 331): it calls us for the object that takes the byte at
 * which the thread's next sample is due. The distances between those bytes are random, the interval on average.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "byte_clock.h"
#include "jvm.h"
#include "sample.h"
#include "stay.h"
#include "tap.h"

#define JVM_INTERVAL (512 << 10) /* what a JVM begins with */

static struct {
	bool is_open; /* atomic: a callback may come late, when another recording has begun */
	uint32_t index;
	uint64_t interval;
} alloc;

/* What follows a sample; `bytes` in all. */
struct attributes {
	struct duet_attribute size_head;
	uint64_t size;
	struct duet_attribute class_head;
	char class_name[DUET_MAX_CLASS_BYTES];
};

/* Returns how many bytes of attributes there are. */
static uint32_t fill(struct attributes *to, uint64_t size, const char *class_name)
{
	size_t len = class_name ? strnlen(class_name, sizeof(to->class_name)) : 0;

	*to = (struct attributes){
		.size_head = {.type = DUET_ATTRIBUTE_SIZE, .bytes = sizeof(to->size)},
		.size = size,
		.class_head = {.type = DUET_ATTRIBUTE_CLASS, .bytes = (uint16_t)len},
	};
	if (!len)
		return offsetof(struct attributes, class_head);
	memcpy(to->class_name, class_name, len);
	return offsetof(struct attributes, class_head) + duet_attribute_size((uint32_t)len);
}

static void take(struct stay *stay, jclass class, uint64_t size)
{
	struct attributes attributes;
	struct tap_sample from = {
		.event = alloc.index,
		.weight = byte_clock_weight(size, alloc.interval),
		.attributes = &attributes,
	};
	char *class_name = NULL;

	if ((*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &class_name, NULL))
		class_name = NULL;
	from.attribute_bytes = fill(&attributes, size, class_name);
	jvm_deallocate(class_name);
	sample_here(stay, &from);
}

static void JNICALL on_alloc(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size)
{
	struct stay *stay = stay_enter();

	(void)jvmti, (void)env, (void)thread, (void)object;
	if (stay && size > 0 && __atomic_load_n(&alloc.is_open, __ATOMIC_ACQUIRE))
		take(stay, class, (uint64_t)size);
	stay_leave();
}

static void alloc_add_callbacks(jvmtiEventCallbacks *callbacks)
{
	callbacks->SampledObjectAlloc = on_alloc;
}

static void alloc_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	__atomic_store_n(&alloc.is_open, false, __ATOMIC_RELEASE);
	(*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
	(*jvm.jvmti)->SetHeapSamplingInterval(jvm.jvmti, JVM_INTERVAL);
}

static int alloc_start(const struct duet_agent_event *event, const char **ret_why)
{
	alloc.index = event->index;
	alloc.interval = event->interval;
	__atomic_store_n(&alloc.is_open, true, __ATOMIC_RELEASE);
	if (event->interval <= INT_MAX &&
	    !(*jvm.jvmti)->SetHeapSamplingInterval(jvm.jvmti, (jint)event->interval) &&
	    !(*jvm.jvmti)->SetEventNotificationMode(jvm.jvmti, JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL))
		return 0;
	alloc_stop(0);
	*ret_why = "the JVM refuses to sample allocations";
	return -ENOTSUP;
}

const struct agent_tap tap_alloc = {
	.kind = DUET_AGENT_EVENT_ALLOC,
	.first_version = 11,
	.needs = {.can_generate_sampled_object_alloc_events = 1},
	.too_old = "a JVM before JDK 11 cannot sample allocations",
	.refused = "another agent in this JVM samples allocations, and only one can",
	.add_callbacks = alloc_add_callbacks,
	.start = alloc_start,
	.stop = alloc_stop,
};
