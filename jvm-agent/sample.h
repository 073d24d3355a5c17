/* SPDX-License-Identifier: MIT */
/* One sample of the calling thread: in the signal handler, or in a callback of JVMTI. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct regs;
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

/*
 * Like sample_here(), by another thread than the one that is sampled, which is blocked in native code that Java called.
 * If that thread continues before its stack is read, the sample is dropped and counted.
 */
struct sample_thread {
	uintptr_t java_thread;
	uint32_t tid;
};
struct sample_thread sample_own_thread(void);
void sample_blocked(struct stay *stay, const struct tap_sample *from, const struct sample_thread *thread,
		    uint64_t time_ns);

/*
 * Like sample_here() for a thread that called a function of the agent from native code, at `caller`. The walk alone
 * gives the stack. Takes no sample if the agent itself led to the call. `waits`: when there is no room, the thread
 * waits up to a tenth of a second for the loader to make some, but not again until it has.
 */
void sample_native(struct stay *stay, const struct tap_sample *from, const struct regs *caller, bool waits);

/*
 * For an event that lasts: sample_keep() takes the sample of the calling thread, as sample_here() does, when the event
 * begins; sample_write_kept() writes it when the event has ended, on any thread. The time and the weight are known
 * then. Of a stack of more than DUET_MAX_USER_STACK frames, only both ends are kept.
 */
struct sample_kept {
	uint64_t begin_ns;
	uint32_t bytes; /* of the struct duet_sample that follows */
	uint32_t half; /* bytes of the struct duet_java_sample that follows it; 0: there is none */
};
/*
 * Returns NULL when there is no room. The caller frees what `new_memory` (malloc, which sample.c must not name) gave.
 * Both functions are for callers inside stay_enter(). `waits` is as for sample_native().
 */
struct sample_kept *sample_keep(struct stay *stay, const struct tap_sample *from, void *(*new_memory)(size_t bytes));
/* sample_keep() where sample_native() would take the sample. */
struct sample_kept *sample_keep_native(struct stay *stay, const struct tap_sample *from, const struct regs *caller,
				       void *(*new_memory)(size_t bytes));
void sample_write_kept(struct stay *stay, struct sample_kept *kept, uint64_t end_ns, uint64_t weight,
		       bool waits);

/* Allocates the walk buffers for the handlers and callbacks of one stay. Returns NULL when there is no memory. */
struct walk_slot *sample_slots_new(int java_depth);
void sample_slots_free(struct walk_slot *slots, int java_depth);

#endif
