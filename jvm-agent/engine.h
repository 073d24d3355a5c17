/* SPDX-License-Identifier: MIT */
/*
 * An engine decides when threads are sampled: it chooses the signal, makes it arrive, and stops it. To add one, write a
 * file engine_<name>.c that ends in a `const struct agent_engine`, and add a row to engines.c.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "duet_agent.h"

struct agent_engine {
	enum duet_engine_id id;
	bool standalone; /* its samples have no BPF half: the agent walks native frames too, and sets the weight */
	/*
	 * Installs the handler. `wanted` is the signal to take, or 0 for any. Returns the signal, or -errno and a
	 * sentence in *ret_why (constant text).
	 */
	int (*take_signal)(int wanted, const char **ret_why);
	/*
	 * The functions below may be NULL, except `periods` of a standalone engine. They are called on the agent's
	 * thread, unless their comment says otherwise.
	 */
	int (*start)(int signo, uint64_t interval_ns, const char **ret_why);
	void (*stop)(void);
	/* Called every 100 ms. Returns for how many threads ticks could not be set up since the last call. */
	unsigned int (*rescan)(void);
	void (*thread_start)(int tid); /* on the thread itself, as is thread_end */
	void (*thread_end)(int tid);
	/*
	 * Standalone engines only; called in the handler. Returns how many intervals this signal accounts for. 0: take
	 * no sample, because the sample of another thread accounts for them.
	 */
	uint64_t (*periods)(const siginfo_t *info);
};

/* Returns NULL when there is no engine with this id. */
const struct agent_engine *engine_find(uint32_t id);
/* The take_signal of engines that use a real-time signal. */
int engine_take_realtime(int wanted, const char **ret_why);

extern const struct agent_engine engine_bpf;
extern const struct agent_engine engine_ctimer;
extern const struct agent_engine engine_itimer;

#endif
