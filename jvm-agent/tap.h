/* SPDX-License-Identifier: MIT */
/*
 * A tap takes samples from the JVM itself, in callbacks of JVMTI. Several taps and an engine can be open at once. To
 * add one, write a file event/<name>.c that ends in a `const struct agent_tap`, and add a row to sources.c.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "duet_agent.h"

struct agent_tap {
	enum duet_agent_event_kind kind;
	bool needs_no_jvm; /* it takes samples in other processes, too */
	int first_version; /* first version of Java that has the event; an older JVM is not asked for it; 0: all have */
	jvmtiCapabilities needs; /* asked for at START, given back at STOP: other agents may want them */
	/* Messages for the user if the version is too low or the capabilities are refused; constant text. */
	const char *too_old;
	const char *refused;
	void (*add_callbacks)(jvmtiEventCallbacks *callbacks); /* called once, in callbacks_open(); may be NULL */
	/*
	 * Both are called on the agent's thread, between stay_open() and stay_close(). start() returns 0, or -errno and
	 * one sentence in *ret_why (constant text). Callbacks use the stay only between stay_enter() and stay_leave().
	 */
	int (*start)(const struct duet_agent_event *event, const char **ret_why);
	void (*stop)(uint64_t ended_ns); /* events that are not over count up to ended_ns */
	void (*rescan)(void); /* called every 100 ms on the agent's thread; may be NULL */
	/* called at the end of a window: writes samples of what is there, with this time; may be NULL */
	void (*flush)(uint64_t ended_ns);
};

/* Returns NULL when there is no tap of this kind. */
const struct agent_tap *tap_find(uint32_t kind);
void taps_add_callbacks(jvmtiEventCallbacks *callbacks);

/*
 * Starts the taps of these events, each of another kind. A tap that cannot start does not prevent the others from
 * starting. Returns one bit for each index in `events` whose tap failed, and a sentence in *ret_why if any did.
 */
uint32_t taps_start(const struct duet_agent_event *events, uint32_t count, const char **ret_why);
void taps_rescan(void); /* calls the rescan() of the taps that were started */
void taps_flush(uint64_t ended_ns); /* calls their flush() */
void taps_stop(uint64_t ended_ns); /* stops the taps that were started and have not been stopped */

extern const struct agent_tap tap_alloc;
extern const struct agent_tap tap_live;
extern const struct agent_tap tap_lock;
extern const struct agent_tap tap_wait;
extern const struct agent_tap tap_nativemem;
extern const struct agent_tap tap_leak;
extern const struct agent_tap tap_free;
extern const struct agent_tap tap_nativelock;
extern const struct agent_tap tap_method;
extern const struct agent_tap tap_trace;
extern const struct agent_tap tap_exceptions;
extern const struct agent_tap tap_gc;
extern const struct agent_tap tap_safepoint;
extern const struct agent_tap tap_class_load;
extern const struct agent_tap tap_compilation;
extern const struct agent_tap tap_span;
extern const struct agent_tap tap_user;
