/* SPDX-License-Identifier: MIT */
/*
 * What can be sampled. To add an event: a file event_<name>.c that ends in a `const struct event`, and a row in
 * events.c. Help, `duet list`, parsing and the records' units are made from it.
 */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "duet_config.h"

enum event_unit {
	EVENT_NS,    /* of time: -i 10ms */
	EVENT_COUNT, /* -i 100: one of so many */
};

/* How the kernel's perf subsystem counts it (perf_event_open(2)). */
struct event_perf {
	uint32_t type; /* PERF_TYPE_* */
	uint64_t config;
	bool is_clock; /* it ticks by time, whatever runs */
};

struct event {
	const char *name; /* -e NAME */
	const char *help;
	enum event_unit unit; /* of its interval and of its samples' weights */
	uint64_t default_interval;
	uint64_t least_interval, most_interval;
	struct event_perf perf; /* BPF samples it: one of these on each CPU */
	bool has_timers; /* the timer engines can tick for it as well */
	bool may_signal; /* its samples interrupt a thread that runs on: the agent may add Java frames by a signal */
};

/* All of them, the default first; ends with NULL. */
extern const struct event *const event_table[];
const struct event *event_by_name(const char *name); /* NULL when unknown */

/* An event as one recording samples it. */
struct event_spec {
	const struct event *event;
	uint64_t interval; /* in the event's unit */
};

struct event_list {
	struct event_spec items[DUET_MAX_EVENTS];
	size_t len;
};

/*
 * From -e: "cpu,page-faults=100", names with or without an interval, each at most once. 0, or -EINVAL with one sentence
 * in `why`; the list is unchanged then.
 */
int event_list_parse(struct event_list *list, const char *text, struct buf *why);
/* Sets the interval of one from -i: "10ms", "100". As above. */
int event_spec_set_interval(struct event_spec *spec, const char *text, struct buf *why);
/* The first that is a clock; NULL when there is none. */
const struct event_spec *event_list_clock(const struct event_list *list);

bool event_list_has_timers(const struct event_list *list); /* the timer engines can tick for all of them */

/* Appends "10 ms" or "100". */
void event_amount_text(enum event_unit unit, uint64_t amount, struct buf *out);
/* Appends "cpu every 10 ms, page-faults every 100"; with `every`, of so many intervals one. */
void event_list_text(const struct event_list *list, uint64_t every, struct buf *out);

#endif
