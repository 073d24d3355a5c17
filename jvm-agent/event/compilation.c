/* SPDX-License-Identifier: MIT */
/* Methods, and wrappers of native ones, that the JVM compiles: the whole stack, as they are reported later. */
#include "event/shared.h"
#include "jvm/stay.h"
#include "sample/sample.h"
#include "tap.h"

static struct tap_event compilations;

void compilations_on_load(jmethodID method)
{
	const struct tap_sample from = {
		.event = compilations.index, .weight = compilations.every.interval, .waits = true};
	STAY(stay);

	if (stay && tap_event_is_open(&compilations) && one_in_is_due(&compilations.every))
		sample_method(stay, &from, (uintptr_t)method);
}

const struct agent_tap tap_compilation = {
	.kind = DUET_AGENT_EVENT_COMPILATION,
	.event = &compilations,
};
