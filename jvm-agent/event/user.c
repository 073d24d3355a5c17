/* SPDX-License-Identifier: MIT */
/* Events that the program reports by the functions of asprof.h: a type, some bytes, the thread and the time. */
#include <string.h>

#include "event/shared.h"
#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "locked.h"
#include "sample/sample.h"
#include "tap.h"

#define TYPES_MAX 1024

static struct {
	pthread_mutex_t lock; /* guards the count, and the names behind it */
	const char *names[TYPES_MAX]; /* are never freed: the program may use a type for as long as it runs */
	int count; /* atomic: those below it are readable without the lock */
} types = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct tap_event user_event;

struct user_attribute {
	struct duet_attribute head;
	char text[DUET_MAX_USER_TYPE + 1 + DUET_MAX_USER_DATA];
};
_Static_assert(sizeof(((struct user_attribute *)0)->text) % 8 == 0, "an attribute is padded to 8");
_Static_assert(sizeof(struct user_attribute) <= DUET_MAX_ATTRIBUTE_BYTES, "it must fit");

static int find_type(const char *name)
{
	for (int i = 0; i < types.count; i++)
		if (!strcmp(types.names[i], name))
			return i;
	return -1;
}

int user_events_type(const char *name)
{
	LOCKED(&types.lock);
	int type = find_type(name);
	const char *copy;

	if (!*name || strlen(name) > DUET_MAX_USER_TYPE || type >= 0)
		return type;
	copy = types.count < TYPES_MAX ? strdup(name) : NULL;
	if (!copy)
		return -1;
	types.names[types.count] = copy;
	__atomic_store_n(&types.count, types.count + 1, __ATOMIC_RELEASE); /* pairs with user_events_add() */
	return types.count - 1;
}

static void write_event(struct stay *stay, const char *name, const void *data, size_t bytes)
{
	size_t name_bytes = strlen(name) + 1;
	struct user_attribute attribute = {
		.head = {.type = DUET_ATTRIBUTE_USER, .bytes = (uint16_t)(name_bytes + bytes)}};
	const struct tap_sample sample = {
		.event = user_event.index,
		.weight = 1,
		.attributes = &attribute,
		.attribute_bytes = duet_attribute_size(attribute.head.bytes),
	};

	memcpy(attribute.text, name, name_bytes);
	if (bytes)
		memcpy(attribute.text + name_bytes, data, bytes);
	sample_without_stack(stay, &sample, clock_ns());
}

bool user_events_add(int type, const void *data, size_t bytes)
{
	STAY(stay);

	if (type < 0 || type >= __atomic_load_n(&types.count, __ATOMIC_ACQUIRE) || bytes > DUET_MAX_USER_DATA)
		return false;
	if (stay && tap_event_is_open(&user_event))
		write_event(stay, types.names[type], data, bytes);
	return true;
}

const struct agent_tap tap_user = {
	.kind = DUET_AGENT_EVENT_USER,
	.needs_no_jvm = true,
	.refused = "the JVM refuses it",
	.event = &user_event,
};
