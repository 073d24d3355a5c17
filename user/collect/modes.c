/* SPDX-License-Identifier: MIT */
#include "collect/modes.h"

#include <string.h>

#include <linux/perf_event.h>

#include "base/clock.h"

const struct mode modes[] = {
	{
		.name = "cpu",
		.help = "CPU time, in the kernel, in native code and in Java",
		.default_interval_ns = 10 * NS_PER_MS,
		/* Not a hardware counter: virtual machines seldom have one. */
		.perf_type = PERF_TYPE_SOFTWARE,
		.perf_config = PERF_COUNT_SW_CPU_CLOCK,
		.program = "cpu_plain",
		.program_cookie = "cpu_cookie",
	},
	{0},
};

const struct mode *mode_by_name(const char *name)
{
	for (const struct mode *mode = modes; mode->name; mode++)
		if (strcmp(mode->name, name) == 0)
			return mode;
	return NULL;
}
