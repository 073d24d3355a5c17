/* SPDX-License-Identifier: MIT */
/*
 * The events that can be sampled. To add one, write a file event_<name>.c that ends in a `const struct event`, and add
 * a row to events.c. Help, `duet list`, parsing and the units of records are made from it.
 */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "duet_agent.h"
#include "duet_config.h"

enum event_unit {
	EVENT_NS,    /* time: -i 10ms */
	EVENT_COUNT, /* a number: -i 100 means one in 100 */
	EVENT_BYTES, /* bytes: -i 512k */
};

/* How the kernel's perf subsystem counts the event (perf_event_open(2)). */
struct event_perf {
	uint32_t type; /* PERF_TYPE_* */
	uint64_t config;
	bool is_clock; /* it counts time */
};

struct event {
	const char *name; /* -e NAME */
	const char *help;
	enum event_unit unit; /* unit of its interval and of the weights of its samples */
	uint64_t default_interval;
	uint64_t least_interval, most_interval;
	enum duet_program program; /* BPF program that samples it */
	struct event_perf perf; /* for DUET_PROGRAM_PERF: one perf event on each CPU */
	/* what the agent does for it: ticks without BPF, or takes it from the JVM itself */
	enum duet_agent_event_kind agent;
	/*
	 * The program chooses what to sample: all that weighs as much as the interval, or more, and the rest at random.
	 * Sampling less often makes the interval longer.
	 */
	bool is_chosen;
	const struct event *with; /* one whose samples are shown as samples of this one, too; NULL: none */
	bool may_be_all; /* interval 0 is accepted, and the same as 1: all is sampled */
	bool needs_tables; /* the agent walks native frames for it, whoever ticks */
	bool may_signal; /* the sampled thread continues to run, so a signal may make the agent add Java frames */
};

/* All events, the default first; ends with NULL. */
extern const struct event *const event_table[];
const struct event *event_by_name(const char *name); /* returns NULL if unknown */

/* An event as one recording samples it. */
struct event_spec {
	const struct event *event;
	uint64_t interval; /* in the event's unit */
	uint8_t shown_as; /* set by event_list_expand(): index of the event in the list as it was given */
};

struct event_list {
	struct event_spec items[DUET_MAX_EVENTS];
	size_t len;
};

/*
 * Parses -e: "cpu,page-faults=100", names with or without an interval, each at most once. Returns 0, or -EINVAL with
 * one sentence in `why`; then the list is unchanged.
 */
int event_list_parse(struct event_list *list, const char *text, struct buf *why);
/* Sets the interval of one event from -i: "10ms", "100". Returns as above. */
int event_spec_set_interval(struct event_spec *spec, const char *text, struct buf *why);
/* Copies a list that was parsed, and appends the events that others have with them. */
void event_list_expand(struct event_list *ret, const struct event_list *list);
/* Returns the first event that is a clock, or NULL. */
const struct event_spec *event_list_clock(const struct event_list *list);
/* Returns the number of events that this BPF program samples. */
size_t event_list_count(const struct event_list *list, enum duet_program program);

/* Returns true if an engine ticks for it, BPF or a timer; other events come from the JVM itself with every engine. */
bool event_has_ticks(const struct event *event);
bool event_list_has_ticks(const struct event_list *list); /* true if one of them has ticks */
bool event_list_needs_tables(const struct event_list *list); /* true if one of them does */
bool event_list_has_taps(const struct event_list *list); /* true if one of them comes from the JVM itself */

/* Appends "10 ms", "100" or "512 KiB". */
void event_amount_text(enum event_unit unit, uint64_t amount, struct buf *out);
/* Appends "cpu every 10 ms, page-faults every 100"; `every` is a factor of all intervals. */
void event_list_text(const struct event_list *list, uint64_t every, struct buf *out);

#endif
