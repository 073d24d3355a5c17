/* SPDX-License-Identifier: MIT */
/*
 * One loader's stay: everything that signal handlers and JVMTI callbacks may
 * touch between START and STOP, and the gate that keeps it alive while they do.
 */
#ifndef STAY_H
#define STAY_H

#include <stdbool.h>

#include "duet_agent.h"
#include "duet_jvm.h"

#include "ring.h"
#include "tables.h"

struct agent_engine;
struct walk_slot;

#define STAY_LAYOUTS 4 /* the first, and one more for each kind of code that it lacked */

struct stay {
	struct ring ring;
	struct tables tables; /* standalone engines: by what native frames are walked */
	struct walk_slot *slots; /* walk buffers, sample.c */
	const struct agent_engine *engine;
	uint64_t interval_ns;
	int signo;
	uint32_t pid;
	int java_depth; /* above DUET_JAVA_DEPTH, walks leave out no frames either */
	struct duet_jvm_layout layouts[STAY_LAYOUTS]; /* code_publish_layout() */
	const struct duet_jvm_layout *layout; /* for handlers: the newest of them, or NULL; set with release order */
	uint32_t layout_count;
	uint32_t kinds_published;
};

/*
 * For handlers and callbacks. The open stay, or NULL; to be paired with
 * stay_leave() in either case. Async-signal-safe.
 * NULL in a child of fork().
 */
struct stay *stay_enter(void);
void stay_leave(void);

/* From now on stay_enter() gives `stay`, which stays the caller's. */
void stay_open(struct stay *stay);
/*
 * Nobody can enter any more; waits until all have left. false when somebody has
 * not left after a second: then the stay must never be freed.
 */
bool stay_close(void);
/* As stay_close(), and for good: the JVM is going down. */
void stay_seal(void);

#endif
