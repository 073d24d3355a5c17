/* SPDX-License-Identifier: MIT */
/* One loader's stay: all that handlers and callbacks use between START and STOP, kept alive while they do. */
#pragma once

#include "duet_agent.h"
#include "duet_jvm.h"

#include "hotspot/ring.h"
#include "jvm/tables.h"

struct agent_engine;
struct walk_slot;

#define STAY_TIDS (4 << 20) /* above every tid: the kernel's PID_MAX_LIMIT */
#define STAY_LAYOUTS 4 /* the first layout, and one more for each kind of code that it lacked */

struct stay {
	struct ring ring;
	int loader; /* the loader's socket, a descriptor of the stay's own; -1 = none */
	struct tables tables; /* standalone engines: unwind rows for native frames */
	struct walk_slot *slots; /* walk buffers, sample.c */
	const struct agent_engine *engine;
	struct duet_agent_event ticks; /* the event that the engine ticks for; all 0: none, or BPF ticks */
	/*
	 * Off-CPU time, or NULL: by tid, the ns that running threads have waited for a CPU, which each takes at its
	 * next tick; and the event. Set by a tap on the agent's thread, read with acquire order, freed with the stay.
	 */
	uint64_t *waited_ns;
	uint32_t waited_event;
	int signo;
	uint32_t pid;
	bool has_no_room; /* atomic: a thread has waited in vain for room in the sample lane */
	bool is_half; /* atomic: the loader was notified that the sample lane is half full */
	/* frames to ask AsyncGetCallTrace for; above DUET_JAVA_DEPTH, our own walks keep all frames too */
	int java_depth;
	struct duet_jvm_layout layouts[STAY_LAYOUTS]; /* written by code_publish_layout() */
	/* For handlers: the newest of the layouts, or NULL. Set with release order, read with acquire (walk.c). */
	const struct duet_jvm_layout *layout;
	uint32_t layout_count;
	uint32_t kinds_published;
};

/*
 * Called by handlers and callbacks. Returns the open stay, or NULL when none is open, or in a child of fork() (Linux
 * 4.14 and later). The caller must call stay_leave() in either case. Both are async-signal-safe.
 */
struct stay *stay_enter(void);
void stay_leave(void);

/* A local variable: what stay_enter() returns. stay_leave() is called at the end of its scope. */
#define STAY(name) __attribute__((cleanup(stay_end))) struct stay *name = stay_enter()

static inline void stay_end(struct stay **unused)
{
	stay_leave();
}

/* From now on stay_enter() returns `stay`. The caller still owns it. */
void stay_open(struct stay *stay);
/* Closes it, and waits a second at most for who has entered. False: somebody has not left, so never free the stay. */
bool stay_close(void);
/* Like stay_close(), and no stay can be opened any more: the JVM is going down. */
void stay_seal(void);
