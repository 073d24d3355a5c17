/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "jvm.h"
#include "sample.h"
#include "stay.h"

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

static void write_wait(const struct wait_event *event, struct stay *stay, struct sample_kept *kept, uint64_t end_ns)
{
	uint64_t waited_ns = end_ns > kept->begin_ns ? end_ns - kept->begin_ns : 0;
	uint64_t weight = weight_of(waited_ns, event->interval, kept->begin_ns);

	if (weight)
		sample_write_kept(stay, kept, end_ns, weight);
	free(kept);
}

static void drop_wait(void *context, void *kept)
{
	(void)context;
	free(kept);
}

void wait_event_open(struct wait_event *event, const struct duet_agent_event *from)
{
	waits_end(&event->waits, drop_wait, NULL); /* a callback may have put one after wait_event_close() */
	event->index = from->index;
	event->interval = from->interval;
	__atomic_store_n(&event->is_open, true, __ATOMIC_RELEASE);
}

struct closing {
	const struct wait_event *event;
	struct stay *stay;
	uint64_t ended_ns;
};

static void end_wait(void *context, void *kept)
{
	struct closing *closing = context;

	write_wait(closing->event, closing->stay, kept, closing->ended_ns);
}

void wait_event_close(struct wait_event *event, uint64_t ended_ns)
{
	struct closing closing = {event, stay_enter(), ended_ns};

	__atomic_store_n(&event->is_open, false, __ATOMIC_RELEASE);
	if (closing.stay)
		waits_end(&event->waits, end_wait, &closing);
	stay_leave();
}

bool wait_event_is_open(const struct wait_event *event)
{
	return __atomic_load_n(&event->is_open, __ATOMIC_ACQUIRE);
}

uint64_t wait_key(JNIEnv *env, jthread thread)
{
	return thread && jvm.thread_id ? (uint64_t)(*env)->GetLongField(env, thread, jvm.thread_id) : 0;
}

char *wait_class(JNIEnv *env, jobject object)
{
	jclass class = (*env)->GetObjectClass(env, object);
	char *name = NULL;

	if ((*jvm.jvmti)->GetClassSignature(jvm.jvmti, class, &name, NULL))
		name = NULL;
	(*env)->DeleteLocalRef(env, class);
	return name;
}

void wait_begins(struct wait_event *event, struct stay *stay, uint64_t key, const char *class_name)
{
	struct tap_sample from = {.event = event->index};
	struct attributes attributes;
	struct sample_kept *kept;

	free(waits_take(&event->waits, key));
	from.attributes = &attributes;
	from.attribute_bytes = fill(&attributes, class_name);
	kept = sample_keep(stay, &from, malloc);
	if (!kept || waits_put(&event->waits, key, kept))
		return;
	duet_ring_count(stay->ring.page, DUET_AGENT_NO_SLOT);
	free(kept);
}

void wait_ends(struct wait_event *event, struct stay *stay, uint64_t key)
{
	struct sample_kept *kept = waits_take(&event->waits, key);

	if (kept)
		write_wait(event, stay, kept, clock_ns());
}
