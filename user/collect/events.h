/* SPDX-License-Identifier: MIT */
/* One perf event a CPU, each running the same BPF program. Inside collect/ only. */
#ifndef COLLECT_EVENTS_H
#define COLLECT_EVENTS_H

#include <stdint.h>

#include <bpf/libbpf.h>

#include "base/vec.h"
#include "collect/modes.h"

struct events {
	struct vec(int) fds;
	struct vec(struct bpf_link *) links; /* of the first of them, which tick; each closes its event */
};

/*
 * Opens an event on every CPU that is online; whichever process runs there is
 * sampled. How many, or -errno when there is none. A CPU that goes offline later takes its event with it.
 */
int events_open(struct events *events, const struct mode *mode, uint64_t interval_ns);
int events_start(struct events *events, const struct bpf_program *program); /* 0 or -errno */
void events_stop(struct events *events); /* no tick comes after it, on any CPU */
void events_release(struct events *events); /* closes, which takes the kernel a while for each */

#endif
