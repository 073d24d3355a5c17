/* SPDX-License-Identifier: MIT */
/*
 * Methods that the JVM compiles, and wrappers of native methods. The JVM reports them later and on a thread of its own,
 * so the method is the whole stack.
 */
#include <stdbool.h>
#include <stdint.h>

#include "event/shared.h"
#include "jvm/stay.h"
#include "sample/sample.h"
#include "tap.h"

static struct {
	bool is_open; /* atomic: a callback may come late, when another recording has begun */
	uint32_t index;
	struct one_in every;
} compilations;

void compilations_on_load(jmethodID method)
{
	struct tap_sample from;
	struct stay *stay;

	if (!__atomic_load_n(&compilations.is_open, __ATOMIC_ACQUIRE))
		return;
	stay = stay_enter();
	if (stay && one_in_is_due(&compilations.every)) {
		from = (struct tap_sample){
			.event = compilations.index, .weight = compilations.every.interval, .waits = true};
		sample_method(stay, &from, (uintptr_t)method);
	}
	stay_leave();
}

static int compilation_start(const struct duet_agent_event *event, const char **ret_why)
{
	(void)ret_why;
	compilations.index = event->index;
	compilations.every = (struct one_in){.interval = event->interval};
	__atomic_store_n(&compilations.is_open, true, __ATOMIC_RELEASE);
	return 0;
}

static void compilation_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	__atomic_store_n(&compilations.is_open, false, __ATOMIC_RELEASE);
}

const struct agent_tap tap_compilation = {
	.kind = DUET_AGENT_EVENT_COMPILATION,
	.start = compilation_start,
	.stop = compilation_stop,
};
