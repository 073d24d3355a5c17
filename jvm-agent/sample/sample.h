/* SPDX-License-Identifier: MIT */
/* One sample of the calling thread: in the signal handler, or in a callback of JVMTI. */
#pragma once

#include <signal.h>
#include <stddef.h>

#include "duet_context.h"
#include "duet_record.h"

struct regs;
struct stay;
struct walk_slot;

void sample_handler(int signo, siginfo_t *info, void *context);

/*
 * How long a thread may wait for room in the ring; 0: not at all. After a wait in vain, no thread waits again until
 * there has been room. A thread of the agent may wait longer if no thread of the program waits for it. A busy machine
 * stops the loader for some tenths of a second.
 */
#define SAMPLE_ROOM_MS 100
#define SAMPLE_OWN_ROOM_MS 2000

/* What a tap gives for its sample. */
struct tap_sample {
	uint32_t event; /* index in the recording */
	uint64_t weight; /* in the event's unit */
	const void *attributes; /* struct duet_attribute, one after the other */
	uint32_t attribute_bytes; /* <= DUET_MAX_ATTRIBUTE_BYTES, a multiple of 8 */
	/* the native code that called a function of the agent; NULL: the thread is in a callback of JVMTI */
	const struct regs *caller;
	uintptr_t callee; /* with `caller`: address of the function that is shown as the leaf; 0: the caller is it */
	bool waits; /* up to SAMPLE_ROOM_MS for room in the ring */
	/* for sample_here() and sample_keep(): JVMTI is asked for frames of a virtual thread that are on the heap */
	bool is_whole;
	/* With is_whole: all frames may be on the heap, and the stack the carrier's, as after a wait in JDK 24 */
	bool is_on_heap;
	bool is_off_cpu; /* the weight is time off the CPU */
};

/*
 * Takes a sample of the calling thread. In a callback of JVMTI the stack begins at the method that called the JVM. Else
 * it begins at `caller`, and only the walk gives it; no sample is taken if the agent itself caused the call. The caller
 * is inside stay_enter(). If there is no room for the sample, it is dropped and counted.
 */
void sample_here(struct stay *stay, const struct tap_sample *from);

/*
 * Like sample_here(), but called on another thread than the sampled one, which is blocked in native code that Java
 * called. If that thread continues before its stack is read, the sample is dropped and counted.
 */
struct sample_thread {
	uintptr_t java_thread;
	uint32_t tid;
};
struct sample_thread sample_own_thread(void);
void sample_blocked(struct stay *stay, const struct tap_sample *from, const struct sample_thread *thread,
		    uint64_t time_ns);

/* Takes a sample of the calling thread at this time, without its stack. The caller is inside stay_enter(). */
void sample_without_stack(struct stay *stay, const struct tap_sample *from, uint64_t time_ns);

/* The same, with the method of this jmethodID as its only frame, and without attributes. */
void sample_method(struct stay *stay, const struct tap_sample *from, uintptr_t method);

/*
 * For an event that lasts. When the event begins, sample_keep() takes the sample of the calling thread, as
 * sample_here() does. When the event has ended, sample_write_kept() writes the sample, on any thread; the time and the
 * weight are known then. Of a stack of more than DUET_MAX_USER_STACK frames, only both ends are kept.
 */
struct sample_kept {
	uint64_t begin_ns;
	uint32_t bytes; /* of the struct duet_sample that follows */
	uint32_t half; /* bytes of the struct duet_java_sample that follows it; 0: there is none */
};
/*
 * Returns NULL when there is no room. The caller frees the memory, which `new_memory` gave (malloc, which sample.c must
 * not name). Both functions are for callers inside stay_enter(). `room_ms`: SAMPLE_ROOM_MS, SAMPLE_OWN_ROOM_MS or 0.
 */
struct sample_kept *sample_keep(struct stay *stay, const struct tap_sample *from, void *(*new_memory)(size_t bytes));
void sample_write_kept(struct stay *stay, struct sample_kept *kept, uint64_t end_ns, uint64_t weight,
		       uint32_t room_ms);

/*
 * Like sample_keep(), of another thread, which sleeps (walk_sleeper(), which says what the caller must compare). The
 * sample is one of time off the CPU.
 */
struct sample_kept *sample_keep_sleeper(struct stay *stay, const struct tap_sample *from,
					const struct sample_thread *thread, const struct regs *at,
					void *(*new_memory)(size_t bytes));

/* Allocates the walk buffers for the handlers and callbacks of one stay. Returns NULL when there is no memory. */
struct walk_slot *sample_slots_new(int java_depth);
void sample_slots_free(struct walk_slot *slots, int java_depth);

/* ---- attributes.c, compiling.c: attributes of taps' samples, in the layout of struct duet_attribute ---- */

/* The class of an object. */
struct class_attribute {
	struct duet_attribute head;
	char name[DUET_MAX_CLASS_BYTES];
};

/* The address of a piece of memory. */
struct address_attribute {
	struct duet_attribute head;
	uint64_t address;
};

/* A wait for a lock. */
struct lock_attribute {
	struct duet_attribute head;
	struct duet_lock lock;
};

/* Both return the bytes to send. */
uint32_t lock_attribute_set(struct lock_attribute *to, uint64_t id, uint64_t begin_ns, uint32_t owner);
uint32_t address_attribute_set(struct address_attribute *to, uint64_t address);

/* What the time of a sample was spent on. */
struct state_attribute {
	struct duet_attribute head;
	char text[DUET_MAX_STATE_BYTES];
};

/* Fills *to. Returns the bytes to send. A long text is cut. */
uint32_t state_attribute_set(struct state_attribute *to, const char *text);

/* The method that the thread compiles. */
struct compiling_attribute {
	struct duet_attribute head;
	uint64_t method;
};

/* After walk_thread(): fills *to. Returns the bytes to send; 0: the thread compiles nothing. Async-signal-safe. */
struct agent_walk;
uint32_t compiling_attribute_set(struct compiling_attribute *to, struct agent_walk *walk);

/* Fills *to from a class's signature, which is cut if it is too long. Returns the bytes to send; 0 if it is NULL. */
uint32_t class_attribute_set(struct class_attribute *to, const char *signature);

/* context.c: sets *ret to the calling thread's trace and span, as the program has set them. Async-signal-safe. */
void context_here(struct duet_context *ret);
/* Makes this record, which stays the caller's, the calling thread's. NULL: it has none. Not for signal handlers. */
void context_set(struct duet_context_record *record);
