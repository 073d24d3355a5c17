/* SPDX-License-Identifier: MIT */
/* Functions that the JVM calls in place of those of native methods: see native_calls.c. */
#ifndef METHOD_NATIVE_CALLS_H
#define METHOD_NATIVE_CALLS_H

#include <stdint.h>

#define NATIVE_CALLS 256 /* native methods that may ever be replaced in one JVM */

struct native_call {
	uintptr_t function; /* the method's own; 0: not known yet. Atomic */
	int32_t id; /* of the probe, or PROBE_NONE. Atomic */
};

extern struct native_call native_calls[NATIVE_CALLS] __attribute__((visibility("hidden")));

uintptr_t native_calls_at(uint32_t place); /* address of the function for this place, < NATIVE_CALLS */
/* In natives.c: called by that function with its place, if it has a probe. Returns the function to go on to. */
uintptr_t natives_called(uint32_t place);

#endif
