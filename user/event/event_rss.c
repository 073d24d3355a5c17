/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>

#include "event/events.h"

/* Like page-faults, in bytes. */
const struct event event_rss = {
	.name = "rss",
	.help = "memory that becomes resident, by page faults of any process: what makes it grow",
	.unit = EVENT_BYTES,
	.default_interval = 512 << 10,
	.least_interval = 1,
	.most_interval = UINT32_MAX,
	.perf = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS},
	.counts_pages = true,
	.may_signal = true,
};
