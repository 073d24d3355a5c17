/* SPDX-License-Identifier: MIT */
/*
 * Objects allocated in Java's heap. The JVM samples them (JEP 331): it calls the agent for the object that takes the
 * byte at which the thread's next sample is due. The distances between those bytes are random, the interval on average.
 * There are two events: all objects, and the objects that are still in use at the end, or at the end of each window.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "event/byte_clock.h"
#include "event/shared.h"
#include "hotspot/clock.h"
#include "jvm/jvm.h"
#include "jvm/stay.h"
#include "locked.h"
#include "sample/regs.h"
#include "sample/sample.h"
#include "tap.h"

#define MOST_LIVE 262144 /* samples that are kept at a time */
#define FIRST_SWEEP 1024
#define JVM_INTERVAL (512 << 10) /* the interval that a JVM starts with */

/* The JVM has one interval. When both events are open, it is the shorter one. */
static struct tap_event alloc, live;
static uint64_t sampled_interval; /* atomic */

static uint64_t closest_interval; /* see outside_objects_interval(); 0: none; used on the agent's thread only */

/* What is shown of live objects. */
static struct {
	uint32_t survivors; /* least number of collections that they have outlived */
	bool has_ages;
} shown;

/* A state whose text has from 9 to 16 bytes, so that each takes the same room. */
struct age_attribute {
	struct duet_attribute head;
	char text[16];
};

/* The same as a number. */
struct age_number {
	struct duet_attribute head;
	uint64_t age_ns;
};

/* The attributes of a sample. */
struct attributes {
	struct duet_attribute size_head;
	uint64_t size;
	struct class_attribute class;
	/* the ages follow the class, however long that is, with the number at the end */
	uint64_t room[(sizeof(struct age_attribute) + sizeof(struct age_number) + 7) / 8];
};

/* Returns the size of the attributes in bytes. */
static uint32_t fill(struct attributes *to, uint64_t size, const char *class_name)
{
	to->size_head = (struct duet_attribute){.type = DUET_ATTRIBUTE_SIZE, .bytes = sizeof(to->size)};
	to->size = size;
	return offsetof(struct attributes, class) + class_attribute_set(&to->class, class_name);
}

#define SECOND 1000000000ull

/* Texts of different length would need different room. */
static const struct {
	uint64_t below_ns;
	const char *text;
} ages[] = {
	{SECOND, "age_below_1_s"},	   {10 * SECOND, "age_1_to_10_s"},	{60 * SECOND, "age_10_to_60_s"},
	{600 * SECOND, "age_1_to_10_min"}, {3600 * SECOND, "age_10_to_60_min"}, {36000 * SECOND, "age_1_to_10_h"},
	{UINT64_MAX, "age_above_10_h"},
};

static void set_age(struct age_attribute *to, uint64_t age_ns)
{
	size_t i = 0;

	while (age_ns >= ages[i].below_ns)
		i++;
	*to = (struct age_attribute){.head = {.type = DUET_ATTRIBUTE_STATE, .bytes = (uint16_t)strlen(ages[i].text)}};
	memcpy(to->text, ages[i].text, strlen(ages[i].text));
}

struct live_object {
	struct live_object *next;
	jweak object;
	uint64_t weight;
	uint32_t collections; /* pauses of the collector before it was allocated */
	struct sample_kept *sample;
};

static struct {
	pthread_mutex_t lock; /* never held while the JVM is called */
	struct live_object *first;
	uint32_t count;
	uint32_t sweep_at; /* number of kept objects at which to look for dead ones; used on the agent's thread only */
} objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_object(JNIEnv *env, struct live_object *object)
{
	(*env)->DeleteWeakGlobalRef(env, object->object);
	free(object->sample);
	free(object);
}

/* Takes ownership of the object. Returns false when there is no room; the caller still owns the object then. */
static bool add_object(struct live_object *object)
{
	LOCKED(&objects.lock);

	if (objects.count >= MOST_LIVE)
		return false;
	object->next = objects.first;
	objects.first = object;
	objects.count++;
	return true;
}

static struct live_object *take_objects(void)
{
	LOCKED(&objects.lock);
	struct live_object *first = objects.first;

	objects.first = NULL;
	objects.count = 0;
	return first;
}

static void keep_object(struct stay *stay, JNIEnv *env, jobject reference, const struct tap_sample *from)
{
	struct live_object *object = calloc(1, sizeof(*object));

	if (!object)
		return;
	object->weight = from->weight;
	object->collections = collections_count();
	object->sample = sample_keep(stay, from, malloc);
	object->object = object->sample ? (*env)->NewWeakGlobalRef(env, reference) : NULL;
	if (object->object && add_object(object))
		return;
	duet_ring_count(stay->ring.page, DUET_AGENT_NO_SLOT);
	free_object(env, object);
}

/* Returns true if an object that the JVM has sampled is this event's, too, by the weights: size / probability. */
static bool is_chosen(const struct tap_event *event, uint64_t size, uint64_t weight)
{
	uint64_t sampled = byte_clock_weight(size, __atomic_load_n(&sampled_interval, __ATOMIC_RELAXED));
	uint64_t hash = clock_ns() * 0x9e3779b97f4a7c15ull;

	if (!tap_event_is_open(event))
		return false;
	hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull;
	return sampled >= weight || (uint64_t)((unsigned __int128)(hash ^ hash >> 31) * weight >> 64) < sampled;
}

/* Adds the age, as a text too if it is wanted. It is set when the object is shown. Returns the bytes. */
static uint32_t add_age(struct attributes *attributes, uint32_t bytes)
{
	const struct age_number number = {.head = {.type = DUET_ATTRIBUTE_AGE, .bytes = sizeof(number.age_ns)}};
	unsigned char *begin = (unsigned char *)attributes + bytes, *at = begin;
	struct age_attribute age;

	if (shown.has_ages) {
		set_age(&age, 0);
		memcpy(at, &age, sizeof(age));
		at += sizeof(age);
	}
	memcpy(at, &number, sizeof(number));
	return (uint32_t)(at + sizeof(number) - begin);
}

static void take(struct stay *stay, JNIEnv *env, jobject object, jclass class, uint64_t size, const struct regs *caller)
{
	uint64_t alloc_weight = alloc.is_open ? byte_clock_weight(size, alloc.every.interval) : 0;
	uint64_t live_weight = live.is_open ? byte_clock_weight(size, live.every.interval) : 0;
	bool is_alloc = is_chosen(&alloc, size, alloc_weight), is_live = is_chosen(&live, size, live_weight);
	struct attributes attributes;
	struct tap_sample from = {.attributes = &attributes, .is_whole = true};
	char *class_name;

	outside_objects_count(stay, object, size, __atomic_load_n(&sampled_interval, __ATOMIC_RELAXED));
	if (!is_alloc && !is_live)
		return;
	jvm_expect_references(env);
	class_name = jvm_class_signature(class);
	from.attribute_bytes = fill(&attributes, size, class_name);
	jvm_deallocate(class_name);
	from.event = alloc.index;
	from.weight = alloc_weight;
	from.caller = alloc.flags & DUET_AGENT_WITH_NATIVE && stay->tables.file ? caller : NULL;
	if (is_alloc)
		sample_here(stay, &from);
	from.caller = NULL;
	from.event = live.index;
	from.weight = live_weight;
	if (is_live)
		from.attribute_bytes += add_age(&attributes, from.attribute_bytes);
	if (is_live)
		keep_object(stay, env, object, &from);
}

static void JNICALL on_alloc(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size)
{
	struct regs caller = REGS_OF_CALLER();
	STAY(stay);

	if (stay && size > 0)
		take(stay, env, object, class, (uint64_t)size, &caller);
}

/* Makes the JVM sample for the events that are open. */
static bool set_sampling(void)
{
	uint64_t interval = alloc.is_open ? alloc.every.interval : live.every.interval;
	jvmtiEventMode mode = alloc.is_open || live.is_open ? JVMTI_ENABLE : JVMTI_DISABLE;

	if (live.is_open && live.every.interval < interval)
		interval = live.every.interval;
	if (closest_interval && closest_interval < interval)
		interval = closest_interval;
	if (mode == JVMTI_DISABLE)
		interval = JVM_INTERVAL;
	__atomic_store_n(&sampled_interval, interval, __ATOMIC_RELAXED);
	return interval <= INT_MAX && !(*jvm.jvmti)->SetHeapSamplingInterval(jvm.jvmti, (jint)interval) &&
	       jvm_set_event(mode, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
}

/* A callback must not do this: it could make the JVM sample after the end. */
static void heap_rescan(void)
{
	uint64_t interval = __atomic_load_n(&sampled_interval, __ATOMIC_RELAXED);
	uint64_t closer = outside_objects_interval(interval);

	if (closer >= interval)
		return;
	closest_interval = closer;
	outside_objects_begin();
	(void)set_sampling();
}

static void close_event(const struct agent_tap *tap, uint64_t ended_ns)
{
	tap_event_close(tap->own);
	if (!alloc.is_open && !live.is_open) {
		closest_interval = 0;
		outside_objects_begin();
	}
	(void)set_sampling();
}

static int open_event(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	tap_event_open(tap->own, event);
	if (set_sampling())
		return 0;
	close_event(tap, 0);
	*ret_why = "the JVM refuses to sample allocations";
	return -ENOTSUP;
}

/* What becomes of the objects that are still in use. */
struct live_visit {
	struct stay *stay; /* NULL: their samples are not written */
	uint64_t ended_ns;
	bool keeps; /* they are kept */
};

static void write_object(const struct live_visit *visit, struct live_object *object)
{
	uint64_t begin_ns = object->sample->begin_ns;
	uint64_t age_ns = visit->ended_ns > begin_ns ? visit->ended_ns - begin_ns : 0;
	unsigned char *end = (unsigned char *)(object->sample + 1) + object->sample->bytes;
	struct age_number *number = (struct age_number *)(end - sizeof(*number));

	if (!visit->stay || collections_count() - object->collections < shown.survivors)
		return;
	number->age_ns = age_ns;
	if (shown.has_ages)
		set_age((struct age_attribute *)((unsigned char *)number - sizeof(struct age_attribute)), age_ns);
	sample_write_kept(visit->stay, object->sample, visit->ended_ns, object->weight, SAMPLE_OWN_ROOM_MS);
}

/* Frees the objects that are not in use. */
static void visit_objects(JNIEnv *env, const struct live_visit *visit)
{
	struct live_object *object = take_objects(), *next;

	for (; object; object = next) {
		bool is_used = !(*env)->IsSameObject(env, object->object, NULL);

		next = object->next;
		if (is_used)
			write_object(visit, object);
		if (!is_used || !visit->keeps || !add_object(object))
			free_object(env, object);
	}
}

static uint32_t count_objects(void)
{
	LOCKED(&objects.lock);

	return objects.count;
}

/* Drops the samples of dead objects, when there may be as many dead objects as others. */
static void live_rescan(void)
{
	JNIEnv *env = jvm_own_env();
	uint32_t kept;

	heap_rescan();
	if (!env || count_objects() < objects.sweep_at)
		return;
	visit_objects(env, &(struct live_visit){.keeps = true});
	kept = count_objects();
	objects.sweep_at = kept < MOST_LIVE / 2 ? 2 * kept + FIRST_SWEEP : MOST_LIVE - (MOST_LIVE - kept) / 2;
}

/* Drops objects that a late callback kept after the end of the last recording. */
static int live_start(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	JNIEnv *env = jvm_own_env();

	*ret_why = "the agent's thread is not attached to the JVM";
	if (!env)
		return -ENOTSUP;
	visit_objects(env, &(struct live_visit){0});
	objects.sweep_at = FIRST_SWEEP;
	shown.survivors = event->survivors;
	shown.has_ages = event->flags & DUET_AGENT_WITH_AGE;
	*ret_why = "the JVM refuses to report garbage collections";
	return collections_open() ? open_event(tap, event, ret_why) : -ENOTSUP;
}

static void live_flush(uint64_t ended_ns)
{
	STAY(stay);
	JNIEnv *env = jvm_own_env();

	if (env)
		visit_objects(env, &(struct live_visit){stay, ended_ns, .keeps = true});
}

static void live_stop(const struct agent_tap *tap, uint64_t ended_ns)
{
	STAY(stay);
	JNIEnv *env = jvm_own_env();

	close_event(tap, ended_ns);
	if (env)
		visit_objects(env, &(struct live_visit){stay, ended_ns, .keeps = false});
	collections_close();
}

const struct agent_tap tap_alloc = {
	.kind = DUET_AGENT_EVENT_ALLOC,
	.first_version = 11,
	.needs = {.can_generate_sampled_object_alloc_events = 1},
	.too_old = "a JVM before JDK 11 cannot sample allocations; the bpf engine can, with --host if --tlab is given",
	.refused = "another agent in this JVM samples allocations, and only one can",
	.callbacks = {.SampledObjectAlloc = on_alloc},
	.start = open_event,
	.stop = close_event,
	.own = &alloc,
	.rescan = heap_rescan,
};

const struct agent_tap tap_live = {
	.kind = DUET_AGENT_EVENT_LIVE,
	.first_version = 11,
	.needs = {.can_generate_sampled_object_alloc_events = 1, .can_generate_garbage_collection_events = 1},
	.too_old = "a JVM before JDK 11 does not show the objects that it allocates; alloc has their bytes and sites",
	.refused = "another agent in this JVM samples allocations, and only one can",
	.start = live_start,
	.stop = live_stop,
	.own = &live,
	.rescan = live_rescan,
	.flush = live_flush,
};
