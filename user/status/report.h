/* SPDX-License-Identifier: MIT */
/* What duet reports about a recording: facts and losses for the files, and the lines on stderr. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct agents;
struct buf;
struct engine_in_use;
struct event_spec;
struct headline;
struct host;
struct options;
struct outcomes;
struct overhead;
struct pool;
struct process_table;
struct profile;

/* Key of the fact "N ns": CPU time of taking the samples, in BPF and in the JVMs. */
#define REPORT_WALKS "taking samples"

/* What the report is made from; not owned. Valid from the first tick on. */
struct report {
	const struct options *options;
	const struct engine_in_use *engine;
	const char *engine_why; /* why the engine is not bpf; "" if it is bpf, or if the user chose another one */
	uint64_t command_ns; /* when the command began */
	uint64_t started_ns; /* the earliest possible tick */
	struct profile *profile; /* receives facts and losses */
	struct host *host;
	const struct agents *agents;
	const struct process_table *processes;
	const struct outcomes *outcomes; /* of the recording, or of one window */
	const struct overhead *overhead;
	const struct pool *pool;
	const uint64_t *windows; /* number of windows written */
	const uint64_t *longest_step_ns; /* longest time without a look at BPF's ring and the agents */
};

/* Adds the facts known at the start, and describes the host: for files whose recording is cut short. */
void report_beginning(const struct report *report);
/* The same with what changes during a recording: losses, and the cost. For files that are read while they grow. */
void report_so_far(const struct report *report);
void report_facts(const struct report *report); /* adds them to the profile */
void report_losses(const struct report *report); /* the profile's losses become those until now */
void report_details(const struct report *report); /* prints the lines of -v, with the profile's losses */

/* Called once for each cause, also if the count is 0. `name` is as in duet_counters.h. */
typedef void (*loss_handler)(void *context, const char *name, const char *text, uint64_t count);
/* Passes the losses so far: counted by BPF, agents and loader, or reported by AsyncGetCallTrace. */
void report_each_loss(const struct report *report, loss_handler handler, void *context);

/* ---- what the user reads on stderr: its progress, its end in one line, and what to do next: closing.c ---- */

/* The headline of the whole recording until now. Its losses are those counted now, not the profile's. */
void closing_now(const struct report *report, uint64_t now_ns, struct headline *ret);
void closing_progress(const struct report *report);
/* The interval that would have given about 1000 samples, as short as the event and --max-overhead permit. */
uint64_t closing_interval(const struct event_spec *spec, uint64_t count, bool is_limited);
/* Samples of an event; `whole` of them weigh more than the interval, as long waits do. */
struct closing_count {
	uint64_t all, whole;
};

/* How many samples the shorter interval would have given, at most. */
uint64_t closing_given(const struct event_spec *spec, const struct closing_count *count, uint64_t shorter);
/* Prints the recording's end from its profile. `where`: its files or "". `is_shown`: the headline was shown. */
void closing_print(const struct report *report, const char *where, bool is_shown);

/* ---- statistics of a running session, for `duet status` and --metrics: stats.c ---- */

/* A status_answer; `context` is a struct report. */
void stats_answer(void *context, bool for_people, struct buf *text);
