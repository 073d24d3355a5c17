/* SPDX-License-Identifier: MIT */
/*
 * Spans: times that the program reports itself, by one.profiler.Span. A span has a tag, and the
 * thread that reported it, but no stack. Its weight is its length, and its time is its end.
 */
#include <string.h>

#include "event/recording.h"
#include "event/spans.h"
#include "hotspot/clock.h"
#include "jvm/stay.h"
#include "sample/sample.h"
#include "tap.h"

static uint32_t span_event; /* its index in the recording */
static bool is_open; /* atomic: spans are recorded */

struct span_attribute {
	struct duet_attribute head;
	char tag[DUET_MAX_SPAN_BYTES];
};
_Static_assert(DUET_MAX_SPAN_BYTES % 8 == 0, "an attribute is padded to 8");

bool spans_are_recorded(void)
{
	return __atomic_load_n(&is_open, __ATOMIC_ACQUIRE);
}

/* The program may name any times. */
static uint64_t length_of(int64_t start_ns, int64_t *end_ns)
{
	int64_t now_ns = (int64_t)clock_ns();

	if (*end_ns > now_ns)
		*end_ns = now_ns;
	return start_ns > 0 && start_ns < *end_ns ? (uint64_t)(*end_ns - start_ns) : 1;
}

void spans_add(int64_t start_ns, int64_t end_ns, const char *tag, size_t bytes)
{
	struct span_attribute attribute = {.head = {.type = DUET_ATTRIBUTE_SPAN, .bytes = (uint16_t)bytes}};
	struct tap_sample sample = {
		.event = span_event,
		.attributes = &attribute,
		.attribute_bytes = duet_attribute_size((uint32_t)bytes),
	};
	struct stay *stay = stay_enter();

	if (stay && spans_are_recorded() && bytes <= sizeof(attribute.tag)) {
		sample.weight = length_of(start_ns, &end_ns);
		if (bytes)
			memcpy(attribute.tag, tag, bytes);
		sample_without_stack(stay, &sample, end_ns > 0 ? (uint64_t)end_ns : 1);
	}
	stay_leave();
}

static int span_start(const struct duet_agent_event *event, const char **ret_why)
{
	(void)ret_why;
	span_event = event->index;
	__atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
	recording_notify_state();
	return 0;
}

static void span_stop(uint64_t ended_ns)
{
	(void)ended_ns;
	__atomic_store_n(&is_open, false, __ATOMIC_RELEASE);
	recording_notify_state();
}

const struct agent_tap tap_span = {
	.kind = DUET_AGENT_EVENT_SPAN,
	.first_version = 8,
	.too_old = "a JVM before JDK 8 is not known",
	.refused = "the JVM refuses it",
	.start = span_start,
	.stop = span_stop,
};
