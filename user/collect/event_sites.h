/* SPDX-License-Identifier: MIT */
/*
 * The perf events to open for an event: its places, looked up on this host and in the processes to sample. Used inside
 * collect/ only.
 */
#ifndef COLLECT_EVENT_SITES_H
#define COLLECT_EVENT_SITES_H

#include "base/buf.h"
#include "base/vec.h"
#include "collect/kernel/tracefs.h"
#include "collect/perf_events.h"
#include "event/event.h"
#include "sym/target_file.h"

struct collector_options;

struct event_sites {
	struct vec(struct event_perf) list; /* a static probe can have several places */
	struct tracefs_field field; /* of a tracepoint: the field that is the weight of a hit; bytes is 0 without one */
	bool no_kernel_stack;
	struct target_file file; /* file of a probe; it must stay open until the probe is opened */
	bool has_file;
	char path[32]; /* of that descriptor */
	char *place; /* its path in its process's root, beside which its debug file may lie; NULL without one */
};

/* Returns 0, or -errno with one sentence in `why`. Release `ret` in any case. */
int event_sites_find(struct event_sites *ret, const struct event *event, const struct collector_options *options,
		     struct buf *why);
void event_sites_release(struct event_sites *sites);
/* true if both are the same tracepoint */
bool event_sites_same(const struct event_sites *a, const struct event_sites *b);

/* Opens the perf events of all sites. Returns 0, or -errno with one sentence in `why`. */
int event_sites_open(const struct event_sites *sites, const struct event_spec *spec,
		     const struct collector_options *options, struct perf_events *ret, struct buf *why);

#endif
