/* SPDX-License-Identifier: MIT */
/*
 * One loader's stay: everything that signal handlers and JVMTI callbacks may
 * touch between START and STOP, and the gate that keeps it alive while they do.
 */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>

#include "duet_agent.h"
#include "duet_jvm.h"

#include "ring.h"
#include "tables.h"

struct engine;
struct slot;

#define SESSION_LAYOUTS 4 /* the first, and one more for each kind of code that it lacked */

struct session {
	struct ring ring;
	struct tables tables; /* standalone engines: by what native frames are walked */
	struct slot *slots; /* walk buffers, sample.c */
	const struct engine *engine;
	uint64_t interval_ns;
	int signo;
	uint32_t pid;
	int java_depth; /* above DUET_JAVA_DEPTH, walks leave out no frames either */
	struct duet_jvm_layout layouts[SESSION_LAYOUTS]; /* code_publish_layout() */
	const struct duet_jvm_layout *layout; /* for handlers: the newest of them, or NULL; set with release order */
	uint32_t layout_count;
	uint32_t kinds_published;
};

/*
 * For handlers and callbacks. The open session, or NULL; to be paired with
 * session_leave() in either case. Async-signal-safe.
 * NULL in a child of fork().
 */
struct session *session_enter(void);
void session_leave(void);

/* From now on session_enter() gives `session`, which stays the caller's. */
void session_open(struct session *session);
/*
 * Nobody can enter any more; waits until all have left. false when somebody has
 * not left after a second: then the session must never be freed.
 */
bool session_close(void);
/* As session_close(), and for good: the JVM is going down. */
void session_seal(void);

#endif
