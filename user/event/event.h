/* SPDX-License-Identifier: MIT */
/*
 * The events that can be sampled. To add one, add a row to table.c: help, `duet list`, parsing and the units of records
 * are made from it. Events at a place in a program or in the kernel have no row: the families of families.c make them
 * from the user's text.
 */
#pragma once

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

/* How the kernel's perf subsystem counts the event: fields of struct perf_event_attr (perf_event_open(2)). */
struct event_perf {
	uint32_t type; /* PERF_TYPE_* */
	uint32_t bp_type; /* HW_BREAKPOINT_*, for breakpoints */
	uint64_t config;
	uint64_t config1; /* breakpoints: the address */
	uint64_t config2; /* breakpoints: the number of bytes */
	bool is_clock; /* it counts time */
	bool by_period; /* it happens too often for a sample each time: the kernel counts up to the interval */
};

/* Where the missing part of `perf` is looked up on the host before the event can be opened. */
enum event_source {
	EVENT_COMPLETE, /* nothing is missing */
	EVENT_PMU, /* `file`: the PMU in /sys/bus/event_source/devices; `name`: its event or terms */
	EVENT_BREAKPOINT, /* `name`: a variable or function, or NULL; `offset` from it, or the address */
	EVENT_TRACEPOINT, /* `file`: the group; `name`; `field`: the weight of a hit, or NULL */
	EVENT_KPROBE, /* `name`: a function of the kernel; `offset` in it */
	EVENT_UPROBE, /* `file`; `name`: a function of it, or NULL; `offset` in the function, or in the file */
	EVENT_USDT, /* `file`; `field`: the provider; `name` */
	EVENT_METHOD, /* of a family alone: the agent looks for methods, the host does not */
	EVENT_SOURCE_MAX
};

/* --NAME, which adds the event to the recording. */
enum event_option {
	EVENT_NO_OPTION,
	EVENT_SWITCH,	/* --live */
	EVENT_INTERVAL, /* --alloc 512k: with its interval */
};

struct event_place {
	enum event_source source;
	bool at_return; /* at the function's return, not at its entry */
	char *file, *name, *field;
	uint64_t offset;
};

struct event {
	const char *name; /* -e NAME */
	const char *help;
	enum event_unit unit; /* unit of its interval and of the weights of its samples */
	uint64_t default_interval;
	uint64_t least_interval, most_interval;
	enum duet_program program; /* BPF program that samples it */
	struct event_perf perf; /* for DUET_PROGRAM_PERF: one perf event on each CPU */
	struct event_place place;
	/* the agent's part: it ticks without BPF, or takes the event from the JVM itself */
	enum duet_agent_event_kind agent;
	/*
	 * The program chooses what to sample: everything that weighs at least the interval, and the rest at random.
	 * Sampling less often makes the interval longer.
	 */
	bool is_chosen;
	const struct event *also_shows; /* one whose samples are shown as samples of this one, too; NULL: none */
	const struct event *requires; /* one that must be recorded too: this one is about its samples; NULL: none */
	bool has_holders; /* its samples are waits for locks, which can be shown with who held the lock */
	bool has_wakers; /* each sleep is shown with who ended it */
	bool counts_pages; /* a tick of `perf` weighs a page of memory */
	bool counts_calls; /* the interval is a number of calls, whatever the unit of their weights is */
	bool may_be_all; /* interval 0 is accepted, and the same as 1: all is sampled */
	enum event_option option;
	const struct event *interval_of; /* EVENT_SWITCH: has its interval where both are sampled; NULL: none */
	bool is_in_all; /* --all adds it */
	bool needs_tables; /* the agent walks native frames for it, whoever ticks */
	bool may_signal; /* the sampled thread continues to run, so a signal may make the agent add Java frames */
};

/* All events, the default first; ends with NULL. */
extern const struct event *const event_table[];
/* Who releases locks for which others wait. Not in the table: event_list_add_holders() adds it to a recording. */
extern const struct event event_holders;
const struct event *event_by_name(const char *name); /* an event of the table; returns NULL if unknown */
/*
 * Returns an event of the table, by its name or by another name that perf has for it, or an event that a family makes.
 * It lives as long as the process. Returns NULL with one sentence in `why`.
 */
const struct event *event_of_text(const char *text, struct buf *why);
bool event_is_file_part(const char *text); /* true if writer_event_part() may have made the text from an event's name */

/* Events of one form, such as kprobe:FUNCTION. */
struct event_family {
	const char *form; /* the form that help shows */
	const char *help;
	enum event_source source;
	const char *prefix; /* the beginning of the text; NULL: make() decides */
	/*
	 * Fills *event, which is zeroed but for place.at_return, from the text after the prefix. Returns 0; -ENOENT if
	 * the text does not have this form; or -EINVAL with one sentence in `why`. The caller owns what is allocated
	 * for event->place in any case.
	 */
	int (*make)(struct event *event, const char *text, struct buf *why);
	bool at_return; /* place.at_return of its events */
};

extern const struct event_family event_families[]; /* the last row has no form */
/* Calls make() of the first family that accepts the text, and returns its result. */
int event_make(struct event *event, const char *text, struct buf *why);

/* An event of a recording, with its interval. */
struct event_spec {
	const struct event *event;
	uint64_t interval; /* in the event's unit */
	uint8_t shown_as; /* set by event_list_expand(): index of the event in the list as it was given */
};

struct event_list {
	struct event_spec items[DUET_MAX_EVENTS];
	size_t len;
};

/* Parses -e: "cpu,page-faults=100", each at most once. 0, or -EINVAL with `why` and an unchanged list. */
int event_list_parse(struct event_list *list, const char *text, struct buf *why);
/*
 * Adds an event that the list has not, and sets its interval, if `interval` is not NULL. A new one has its default, or
 * the interval of the event that gives its own. Returns as event_list_parse().
 */
int event_list_set(struct event_list *list, const struct event *event, const char *interval, struct buf *why);
/* Sets the interval of one event from -i: "10ms", "100". Returns as above. */
int event_spec_set_interval(struct event_spec *spec, const char *text, struct buf *why);
/* Copies a list that was parsed, and appends the events that its events also show. */
void event_list_expand(struct event_list *ret, const struct event_list *list);
/* Appends the event of who releases locks, if the expanded list has room and an event with waits for locks. */
void event_list_add_holders(struct event_list *list);
/* Returns the list's entry, or NULL. */
struct event_spec *event_list_find(struct event_list *list, const struct event *event);
/* Returns the first event that is a clock, or NULL. */
const struct event_spec *event_list_clock(const struct event_list *list);
/*
 * Returns the clock for which an engine of the agent ticks, or NULL: cpu rather than wall. It has the same ticks for
 * the other one, if there is one.
 */
const struct event_spec *event_list_agent_clock(const struct event_list *list);
/* Returns the number of events that this BPF program samples. */
size_t event_list_count(const struct event_list *list, enum duet_program program);

bool event_is_sleep(const struct event *event); /* true if its samples, or some of them, are the sleeps of threads */
bool event_list_has_sleeps(const struct event_list *list); /* true if one of them is */
bool event_list_has_wakers(const struct event_list *list); /* true if one of them has */
bool event_list_has_holders(const struct event_list *list); /* true if one of them has */

/* Returns true if BPF or a timer ticks for it. Other events come from the JVM itself, with every engine. */
bool event_has_ticks(const struct event *event);
bool event_is_of_methods(const struct event *event); /* true if it names Java methods */
bool event_list_has_ticks(const struct event_list *list); /* true if one of them has ticks */
bool event_list_needs_tables(const struct event_list *list); /* true if one of them needs them */
bool event_list_has_taps(const struct event_list *list); /* true if one of them comes from the JVM itself */

/* Appends "10 ms", "100" or "512 KiB". */
void event_amount_text(enum event_unit unit, uint64_t amount, struct buf *out);
/* Appends "alloc, lock": those events that come from the JVM itself. */
void event_list_tap_names(const struct event_list *list, struct buf *out);
/* Appends the interval as -i takes it: "500us", "64k", "10". */
void event_interval_text(const struct event *event, uint64_t interval, struct buf *out);
/* Appends "cpu every 10 ms, page-faults every 100"; `every` is a factor of all intervals. */
void event_list_text(const struct event_list *list, uint64_t every, struct buf *out);
