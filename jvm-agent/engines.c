/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <stddef.h>

#include "signals.h"

static const struct agent_engine *const engines[] = {
	&engine_none,
	&engine_bpf,
	&engine_perf,
	&engine_ctimer,
	&engine_itimer,
};

const struct agent_engine *engine_find(uint32_t id)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (engines[i]->id == id)
			return engines[i];
	return NULL;
}

int engine_take_realtime(int wanted, const char **ret_why)
{
	int signo = signals_take_realtime(wanted);

	if (signo < 0)
		*ret_why = wanted ? "the signal asked for is in use in this JVM"
				  : "every real-time signal is in use in this JVM";
	return signo;
}
