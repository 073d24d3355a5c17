/* SPDX-License-Identifier: MIT */
/* No engine: there are no ticks, and no signal is taken. */
#include "engine.h"

static int none_take_signal(int wanted, const char **ret_why)
{
	(void)wanted, (void)ret_why;
	return 0;
}

const struct agent_engine engine_none = {
	.id = DUET_ENGINE_NONE,
	.take_signal = none_take_signal,
};
