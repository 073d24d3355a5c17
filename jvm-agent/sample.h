/* SPDX-License-Identifier: MIT */
/* One sample of the calling thread: in the signal handler, or in a callback of JVMTI. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <signal.h>
#include <stdint.h>

struct stay;
struct walk_slot;

void sample_handler(int signo, siginfo_t *info, void *context);

/* What a tap knows of its sample. */
struct tap_sample {
	uint32_t event; /* index in the recording */
	uint64_t weight; /* in the event's unit */
	const void *attributes; /* struct duet_attribute, one after the other */
	uint32_t attribute_bytes; /* <= DUET_MAX_ATTRIBUTE_BYTES, a multiple of 8 */
};

/*
 * Takes a sample of the calling thread, which is in a callback of JVMTI, from the method that called the JVM on. The
 * caller is inside stay_enter(). A sample for which there is no room is dropped and counted.
 */
void sample_here(struct stay *stay, const struct tap_sample *from);

/* Allocates the walk buffers for the handlers and callbacks of one stay. Returns NULL when there is no memory. */
struct walk_slot *sample_slots_new(int java_depth);
void sample_slots_free(struct walk_slot *slots, int java_depth);

#endif
