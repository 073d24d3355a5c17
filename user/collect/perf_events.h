/* SPDX-License-Identifier: MIT */
/* One perf event a CPU, each running the same BPF program. Inside collect/ only. */
#ifndef COLLECT_PERF_EVENTS_H
#define COLLECT_PERF_EVENTS_H

#include <stdint.h>

#include <bpf/libbpf.h>

#include "base/vec.h"
#include "event/event.h"

struct perf_events {
	struct vec(int) fds;
	struct vec(struct bpf_link *) links; /* of the first of them, which tick; each closes its event */
};

/*
 * Opens an event on every CPU that is online; whichever process runs there is
 * sampled. How many, or -errno when there is none. A CPU that goes offline later takes its event with it.
 */
int perf_events_open(struct perf_events *events, const struct event_perf *perf, uint64_t period);
/* `cookie` is what bpf_get_attach_cookie() returns in the program; before Linux 5.15 it must be 0. 0 or -errno. */
int perf_events_start(struct perf_events *events, const struct bpf_program *program, uint64_t cookie);
void perf_events_stop(struct perf_events *events); /* no tick comes after it, on any CPU */
void perf_events_release(struct perf_events *events); /* closes, which takes the kernel a while for each */

#endif
