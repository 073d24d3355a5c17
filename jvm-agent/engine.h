/* SPDX-License-Identifier: MIT */
/*
 * An engine decides when threads are sampled: it chooses the signal, makes it arrive, and stops it. To add one, write a
 * file engine/<name>.c that ends in a `const struct agent_engine`, and add a row to sources.c.
 */
#pragma once

#include <signal.h>

#include "duet_agent.h"

struct kernel_stack;
struct stay;

struct agent_engine {
	enum duet_engine_id id;
	bool counts; /* standalone engines: page faults can be the ticks, instead of a clock */
	bool standalone; /* samples have no BPF half: the agent walks native frames too, and sets the weight */
	const struct agent_engine *instead; /* the engine to use when this one cannot start; NULL = none */
	/* Installs the handler on `wanted`, or any signal if 0. Returns it, or -errno and why. NULL: none. */
	int (*take_signal)(int wanted, const char **ret_why);
	/* May be NULL, but `periods` of a standalone engine. Called on the agent's thread, unless said otherwise. */
	/* Starts the ticks for the event `ticks`, which stays valid until release(). */
	int (*start)(int signo, const struct duet_agent_event *ticks, const char **ret_why);
	void (*stop)(void); /* also called when the start failed */
	void (*release)(void); /* called after stop(), when no handler runs any more: frees what handlers use */
	/* Called every 100 ms. Counts the threads for which ticks could not be set up since the last call. */
	void (*rescan)(struct stay *stay);
	void (*thread_start)(int tid); /* on the thread itself, as is thread_end */
	void (*thread_end)(int tid);
	/* Standalone engines, in the handler: the intervals this signal accounts for; 0: another sample does. */
	uint64_t (*periods)(int tid, const siginfo_t *info);
	/*
	 * Engines that see kernel frames only. Called in the handler, after periods(). Takes the kernel frames of the
	 * oldest tick; depth 0 when the tick was in user mode, or when there is none. Ticks after `until_ns` are caused
	 * by the handler itself. Returns true if more ticks wait: the thread did not return to user mode between them.
	 */
	bool (*next_tick)(int tid, uint64_t until_ns, struct kernel_stack *ret);
	/* Called at the end of the handler, also when no sample was taken. */
	void (*handled)(int tid);
};

/* Returns NULL when there is no engine with this id. */
const struct agent_engine *engine_find(uint32_t id);

extern const struct agent_engine engine_perf;
extern const struct agent_engine engine_ctimer;
extern const struct agent_engine engine_itimer;

/* ---- signals.c. A real-time signal keeps its handler for good: a late signal would end the JVM ---- */

/*
 * Installs the handler on a real-time signal that nobody uses: `wanted` if it is not 0, else the signal of the last
 * stay, else the first that is free and that no thread waits for. Returns the signal, -EBUSY, or another -errno.
 */
int signals_take_realtime(int wanted, const char **ret_why);
/*
 * The same for SIGPROF, the only signal that setitimer(ITIMER_PROF) sends, or for SIGURG, which by default is ignored:
 * a late one harms neither this program nor one that it executes.
 */
int signals_take(int signo);
/* Returns false while another profiler has replaced our handler of this signal. */
bool signals_have(int signo);
/*
 * Gives SIGPROF or SIGURG up, if the handler is still ours. SIGPROF becomes SIG_IGN: JFR does not take a signal that
 * has a handler, and a late one ends nobody.
 */
void signals_leave(int signo);
