/* SPDX-License-Identifier: MIT */
/* Classes, each once for each loader that defines it. The leaf is the class, below is the code that needed it. */
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "sample/sample.h"
#include "tap.h"

static struct tap_event loads;

static void take(struct stay *stay, jclass class)
{
	char *name = jvm_class_signature(class);
	struct class_attribute attribute;
	struct tap_sample from = {
		.event = loads.index,
		.weight = loads.every.interval,
		.attributes = &attribute,
		.attribute_bytes = class_attribute_set(&attribute, name),
		.waits = true,
		.is_whole = true,
	};

	jvm_deallocate(name);
	sample_here(stay, &from);
}

/* jvm.c enables this event while a loader is there, whatever is recorded. */
static void JNICALL on_load(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
	STAY(stay);

	if (stay && tap_event_is_open(&loads) && one_in_is_due(&loads.every))
		take(stay, class);
}

/* Classes that a JVM at its start has loaded itself, or from an AOT cache; they are not reported, nor asked for. */
static void count_loaded_before(void)
{
	JNIEnv *env = jvm_own_env();
	STAY(stay);
	struct jvm_preparing list;
	jboolean is_array;

	if (stay && env && jvm_prepare_begin(env, &list)) {
		for (jint i = 0; i < list.count; i++)
			if ((*jvm.jvmti)->IsArrayClass(jvm.jvmti, list.classes[i], &is_array) || !is_array)
				duet_ring_count(stay->ring.page, DUET_AGENT_LOADED_BEFORE);
		jvm_prepare_end(env, &list);
	}
}

static int class_load_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	if (__atomic_load_n(&jvm.is_starting, __ATOMIC_ACQUIRE))
		count_loaded_before();
	return 0;
}

const struct agent_tap tap_class_load = {
	.kind = DUET_AGENT_EVENT_CLASS_LOAD,
	.callbacks = {.ClassLoad = on_load},
	.start = class_load_start,
	.event = &loads,
};
