/* SPDX-License-Identifier: MIT */
#include "engine/engines.h"

#include <errno.h>
#include <string.h>

const struct engine engines[] = {
	[ENGINE_AUTO] = {"auto", 0, "bpf if the kernel allows it, else ctimer"},
	[ENGINE_BPF] = {"bpf", DUET_ENGINE_BPF, "one perf event a CPU, kernel stacks, every process"},
	[ENGINE_CTIMER] = {"ctimer", DUET_ENGINE_CTIMER,
			   "a timer on each thread's CPU clock, user frames of your own JVMs"},
	[ENGINE_ITIMER] = {"itimer", DUET_ENGINE_ITIMER,
			   "one timer on the process's CPU clock (SIGPROF), user frames of your own JVMs"},
	{0},
};

int engine_by_name(const char *name)
{
	for (int i = 0; engines[i].name; i++)
		if (!strcmp(engines[i].name, name))
			return i;
	return -EINVAL;
}
