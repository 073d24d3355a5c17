/* SPDX-License-Identifier: MIT */
/*
 * A tap takes samples from the JVM itself, in callbacks of JVMTI. Several taps and an engine can be open at once. To
 * add one, write a file event/<name>.c that ends in a `const struct agent_tap`, and add a row to AGENT_TAPS.
 */
#pragma once

#include <jvmti.h>

#include "duet_agent.h"

/* Picks exactly one occurrence at random from every `interval` of them, so that periodic patterns cannot bias it. */
struct one_in {
	uint64_t interval; /* > 0 */
	uint64_t count; /* occurrences so far; atomic */
};

/* Counts one occurrence. Returns true if it is chosen. Callable on all threads at once. */
static inline bool one_in_is_due(struct one_in *every)
{
	uint64_t interval = every->interval, place, hash;

	if (interval == 1)
		return true;
	place = __atomic_fetch_add(&every->count, 1, __ATOMIC_RELAXED);
	hash = place / interval * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull;
	return place % interval == (hash ^ hash >> 29) % interval;
}

/* An event of a tap. Callbacks may come late, when another recording has begun: they look whether it is open. */
struct tap_event {
	bool is_open; /* atomic */
	uint32_t index, flags; /* of struct duet_agent_event */
	struct one_in every;
};

static inline void tap_event_open(struct tap_event *event, const struct duet_agent_event *from)
{
	event->index = from->index;
	event->flags = from->flags;
	event->every = (struct one_in){.interval = from->interval};
	__atomic_store_n(&event->is_open, true, __ATOMIC_RELEASE);
}

static inline void tap_event_close(struct tap_event *event)
{
	__atomic_store_n(&event->is_open, false, __ATOMIC_RELEASE);
}

static inline bool tap_event_is_open(const struct tap_event *event)
{
	return __atomic_load_n(&event->is_open, __ATOMIC_ACQUIRE);
}

struct agent_tap {
	enum duet_agent_event_kind kind;
	bool needs_no_jvm; /* it takes samples in other processes, too */
	int first_version; /* first version of Java that has the event; an older JVM is not asked for it; 0: all have */
	jvmtiCapabilities needs; /* asked for at START, given back at STOP: other agents may want them */
	/* Messages for the user if the version is too low or the capabilities are refused; constant text. */
	const char *too_old;
	const char *refused;
	jvmtiEventCallbacks callbacks; /* its own of JVMTI; no two taps have the same */
	/*
	 * Both are called on the agent's thread, between stay_open() and stay_close(). start() returns 0, or -errno and
	 * one sentence in *ret_why (constant text). Callbacks use the stay only between stay_enter() and stay_leave().
	 * With `event`, which is opened after start() and closed before stop(), both may be NULL.
	 */
	struct tap_event *event;
	int (*start)(const struct agent_tap *tap, const struct duet_agent_event *event, const char **ret_why);
	/* events that are not over count up to ended_ns */
	void (*stop)(const struct agent_tap *tap, uint64_t ended_ns);
	void *own; /* of start() and stop() */
	void (*rescan)(void); /* called every 100 ms on the agent's thread; may be NULL */
	/* called at the end of a window: writes samples of what is there, with this time; may be NULL */
	void (*flush)(uint64_t ended_ns);
	/*
	 * Called when a Java thread has started, on that thread, and for each that there is, ten times a second at the
	 * beginning and once a second later; with java_thread 0 when it ends, on that thread. Also called while the tap
	 * is not open. May be NULL.
	 */
	void (*note_thread)(int tid, uintptr_t java_thread);
};

/* Returns NULL when there is no tap of this kind. */
const struct agent_tap *tap_find(uint32_t kind);
void taps_add_callbacks(jvmtiEventCallbacks *callbacks);
void taps_note_thread(int tid, uintptr_t java_thread); /* calls the note_thread() of all taps */

/*
 * Starts the taps of these events, each of another kind. A tap that cannot start does not prevent the others from
 * starting. Returns one bit for each index in `events` whose tap failed, and a sentence in *ret_why if any did.
 */
uint32_t taps_start(const struct duet_agent_event *events, uint32_t count, const char **ret_why);
void taps_rescan(void); /* calls the rescan() of the taps that were started */
void taps_flush(uint64_t ended_ns); /* calls their flush() */
void taps_stop(uint64_t ended_ns); /* stops the taps that were started and have not been stopped */

/* One row for each tap, in any order. */
#define AGENT_TAPS(row) \
	row(alloc) row(live) row(lock) row(wait) row(nativemem) row(leak) row(free) row(nativelock) row(method) \
	row(trace) row(exceptions) row(gc) row(safepoint) row(class_load) row(compilation) row(span) row(user) \
	row(offcpu)

#define AGENT_TAP_EXTERN(name) extern const struct agent_tap tap_##name;
AGENT_TAPS(AGENT_TAP_EXTERN)
