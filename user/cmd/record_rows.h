/* SPDX-License-Identifier: MIT */
/* The options of `duet record`, as given on the command line or in a configuration. They fill a struct options. */
#pragma once

#include "cmd/cmd.h"
#include "event/options.h"

extern const struct opt record_rows[];

enum record_without_bpf {
	RECORD_REFUSED, /* no other engine is used */
	RECORD_UNASKED, /* another one is refused if it is named, but takes the place of BPF where that cannot run */
	RECORD_LESS, /* another one is used, and leaves it out */
};

/* An option that only the bpf engine has. */
struct record_of_bpf {
	const char *word;
	size_t offset, bytes; /* of its member, which is zero if it is not given */
	enum record_without_bpf without;
	const char *why; /* the rest of the sentence about an engine, which is its %s */
};
extern const struct record_of_bpf record_of_bpf[]; /* the last row has no word */

int record_cpu(void *field, const char *value, struct buf *why); /* a parser: [uint32_t] 1 + the number of a CPU */
