/* SPDX-License-Identifier: MIT */
/*
 * Who ticks. An engine chooses the signal, makes it arrive, and stops it. To
 * add one: a file engine_<name>.c that ends in a `const struct agent_engine`, and a row
 * in engines.c.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "duet_agent.h"

struct agent_engine {
	enum duet_engine_id id;
	bool standalone; /* its samples have no other half: the agent walks native frames too, and weighs them */
	/* Installs the handler: the signal, or -errno and a sentence in *ret_why (constant text). */
	int (*take_signal)(int wanted, const char **ret_why);
	/* From here on all functions may be NULL. Agent's thread, but for thread_start and thread_end. */
	int (*start)(int signo, uint64_t interval_ns, const char **ret_why);
	void (*stop)(void);
	/* Every 100 ms. Threads whose ticks could not be set up since the last call. */
	unsigned int (*rescan)(void);
	void (*thread_start)(int tid); /* on the thread itself */
	void (*thread_end)(int tid);
	/*
	 * Standalone engines, in the handler: how many intervals this signal stands for. 0: none, the sample of another
	 * thread stands for them.
	 */
	uint64_t (*periods)(const siginfo_t *info);
};

/* NULL when there is none. */
const struct agent_engine *engine_find(uint32_t id);
/* take_signal of the engines that tick by a real-time signal. */
int engine_take_realtime(int wanted, const char **ret_why);

extern const struct agent_engine engine_bpf;
extern const struct agent_engine engine_ctimer;
extern const struct agent_engine engine_itimer;

#endif
