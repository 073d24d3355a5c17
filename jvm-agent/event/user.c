/* SPDX-License-Identifier: MIT */
/* Events that the program reports by the functions of asprof.h: a type, some bytes, the thread and the time. */
#include <pthread.h>
#include <string.h>

#include "event/shared.h"
#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "sample/sample.h"
#include "tap.h"

#define TYPES_MAX 1024

static struct {
	pthread_mutex_t lock; /* guards the count, and the names behind it */
	const char *names[TYPES_MAX]; /* are never freed: the program may use a type for as long as it runs */
	int count; /* atomic: those below it are readable without the lock */
} types = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t user_event; /* its index in the recording */
static bool is_open; /* atomic */

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

static int add_type(const char *name)
{
	const char *copy = types.count < TYPES_MAX ? strdup(name) : NULL;

	if (!copy)
		return -1;
	types.names[types.count] = copy;
	__atomic_store_n(&types.count, types.count + 1, __ATOMIC_RELEASE); /* pairs with user_events_add() */
	return types.count - 1;
}

int user_events_type(const char *name)
{
	int type;

	if (!*name || strlen(name) > DUET_MAX_USER_TYPE)
		return -1;
	pthread_mutex_lock(&types.lock);
	type = find_type(name);
	if (type < 0)
		type = add_type(name);
	pthread_mutex_unlock(&types.lock);
	return type;
}

static void write_event(struct stay *stay, const char *name, const void *data, size_t bytes)
{
	size_t name_bytes = strlen(name) + 1;
	struct user_attribute attribute = {
		.head = {.type = DUET_ATTRIBUTE_USER, .bytes = (uint16_t)(name_bytes + bytes)}};
	const struct tap_sample sample = {
		.event = user_event,
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
	struct stay *stay;

	if (type < 0 || type >= __atomic_load_n(&types.count, __ATOMIC_ACQUIRE) || bytes > DUET_MAX_USER_DATA)
		return false;
	stay = stay_enter();
	if (stay && __atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
		write_event(stay, types.names[type], data, bytes);
	stay_leave();
	return true;
}

static int user_start(const struct duet_agent_event *event, const char **ret_why)
{
	(void)ret_why;
	user_event = event->index;
	__atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
	return 0;
}

static void user_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	__atomic_store_n(&is_open, false, __ATOMIC_RELEASE);
}

const struct agent_tap tap_user = {
	.kind = DUET_AGENT_EVENT_USER,
	.needs_no_jvm = true,
	.refused = "the JVM refuses it",
	.start = user_start,
	.stop = user_stop,
};
