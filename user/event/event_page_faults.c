/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>

#include "event/events.h"

const struct event event_page_faults = {
	.name = "page-faults",
	.help = "pages that a thread touched and the kernel had to allocate or map: what makes memory grow",
	.unit = EVENT_COUNT,
	.default_interval = 1,
	.least_interval = 1,
	.most_interval = 1000000000,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS},
	.agent = DUET_AGENT_EVENT_PAGE_FAULTS,
	.may_signal = true,
};
