/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include <errno.h>

#include "jvm/jvm.h"

#define OLDEST_VERSION 8

static const struct agent_tap *open_taps[DUET_MAX_EVENTS];
static uint32_t open_count;

static void relinquish(const struct agent_tap *tap)
{
	if (jvm.jvmti)
		(*jvm.jvmti)->RelinquishCapabilities(jvm.jvmti, &tap->needs);
}

static int start_one(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why)
{
	int error = 0;

	*ret_why = "the process has no JVM";
	if (!jvm.jvmti && !tap->needs_no_jvm)
		return -ENOTSUP;
	*ret_why = jvm.version < OLDEST_VERSION ? "a JVM before JDK 8 is not known" : tap->too_old;
	if (jvm.jvmti && (jvm.version < OLDEST_VERSION || jvm.version < tap->first_version))
		return -ENOTSUP;
	*ret_why = tap->refused;
	if (jvm.jvmti && (*jvm.jvmti)->AddCapabilities(jvm.jvmti, &tap->needs))
		return -EBUSY;
	if (tap->start)
		error = tap->start(tap, event, ret_why);
	if (error)
		relinquish(tap);
	else if (tap->event)
		tap_event_open(tap->event, event);
	return error;
}

uint32_t taps_start(const struct duet_agent_event *events, uint32_t count, const char **ret_why)
{
	uint32_t refused = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct agent_tap *tap = tap_find(events[i].kind);
		const char *why;

		if (!tap) /* the engine ticks for this event */
			continue;
		if (!start_one(tap, &events[i], &why)) {
			open_taps[open_count++] = tap;
			continue;
		}
		refused |= 1u << i;
		*ret_why = why;
	}
	return refused;
}

void taps_rescan(void)
{
	for (uint32_t i = 0; i < open_count; i++)
		if (open_taps[i]->rescan)
			open_taps[i]->rescan();
}

void taps_flush(uint64_t ended_ns)
{
	for (uint32_t i = 0; i < open_count; i++)
		if (open_taps[i]->flush)
			open_taps[i]->flush(ended_ns);
}

void taps_stop(uint64_t ended_ns)
{
	for (uint32_t i = 0; i < open_count; i++) {
		if (open_taps[i]->event)
			tap_event_close(open_taps[i]->event);
		if (open_taps[i]->stop)
			open_taps[i]->stop(open_taps[i], ended_ns);
	}
	while (open_count) /* after all have stopped, because two taps may need the same capability */
		relinquish(open_taps[--open_count]);
}
