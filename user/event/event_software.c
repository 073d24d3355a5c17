/* SPDX-License-Identifier: MIT */
/* Events that the kernel counts itself and that are not frequent: BPF sees each one. */
#include <linux/perf_event.h>

#include "event/events.h"

#define COUNTED .unit = EVENT_COUNT, .default_interval = 1, .least_interval = 1, .most_interval = 1000000000

const struct event event_minor_faults = {
	.name = "minor-faults",
	.help = "page faults that needed no reading of a file or of swap",
	COUNTED,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS_MIN},
	.may_signal = true,
};

const struct event event_major_faults = {
	.name = "major-faults",
	.help = "page faults that read a file or swap",
	COUNTED,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	.may_signal = true,
};

/* No signal: the thread may be within a system call, which would end with EINTR. */
const struct event event_cpu_migrations = {
	.name = "cpu-migrations",
	.help = "threads that continue on another CPU: where they left the first one",
	COUNTED,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_MIGRATIONS},
};

const struct event event_alignment_faults = {
	.name = "alignment-faults",
	.help = "unaligned accesses that the kernel completed (never on x86-64)",
	COUNTED,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_ALIGNMENT_FAULTS},
};

const struct event event_emulation_faults = {
	.name = "emulation-faults",
	.help = "instructions that the kernel emulated (never on x86-64)",
	COUNTED,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_EMULATION_FAULTS},
};
