/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>

#include "base/clock.h"
#include "event/events.h"

const struct event event_cpu = {
	.name = "cpu",
	.help = "CPU time, in the kernel, in native code and in Java",
	.unit = EVENT_NS,
	.default_interval = 10 * NS_PER_MS,
	.least_interval = 10 * NS_PER_US, /* 100 kHz a CPU: default of kernel.perf_event_max_sample_rate */
	.most_interval = 3600 * NS_PER_SEC,
	/* Not a hardware counter: virtual machines seldom have one. */
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .is_clock = true},
	.agent = DUET_AGENT_EVENT_CLOCK,
	.may_signal = true,
	.option = EVENT_SWITCH,
	.is_in_all = true,
};
