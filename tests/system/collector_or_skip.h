/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/buf.h"
#include "collect/collector.h"

/* Opens a collector; where the kernel refuses, says why and skips the test. The caller closes it. */
static inline struct collector *collector_or_skip(const struct collector_options *options)
{
	struct collector *collector = NULL;
	struct buf why;
	int err;

	buf_init(&why);
	err = collector_open(&collector, options, &why);
	if (err < 0)
		print_message("skipped: %s\n", why.data);
	buf_release(&why);
	if (err < 0)
		skip();
	return collector;
}
