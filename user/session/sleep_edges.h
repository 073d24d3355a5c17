/* SPDX-License-Identifier: MIT */
/* The threads that sleep over the end of a window or of the recording (collect/sleepers/sleepers.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engine_in_use;
struct intake;
struct process_table;
struct profile;
struct unwinding;

/* Nothing here is owned. Without an engine that shows threads that sleep, the functions below do nothing. */
struct sleep_edges_deps {
	struct engine_in_use *engine;
	struct intake *intake;
	struct unwinding *unwinding;
	struct process_table *processes;
	const struct profile *profile; /* of the window; its until_ns is 0 without windows */
	bool is_prepared; /* all processes that are recorded were prepared for the walk just before the start */
};

struct sleep_edges {
	struct sleep_edges_deps of;
	uint64_t started_ns;
	uint64_t end_ns; /* when the recording ends; UINT64_MAX if that is not known */
	uint64_t prepared_ns; /* when the processes of threads that sleep were prepared last */
	uint64_t sampled_ns; /* the end of a window up to which sleeps were sampled last */
	uint64_t walked_ns; /* the edge for which the threads that sleep were walked ahead */
};

/* Call at the first tick. `duration_ns` is 0 if the recording has no fixed end. */
void sleep_edges_start(struct sleep_edges *edges, const struct sleep_edges_deps *of, uint64_t started_ns,
		       uint64_t duration_ns);
/*
 * Call often: prepares the processes whose threads sleep, and takes the samples of those threads at the end of each
 * window.
 */
void sleep_edges_step(struct sleep_edges *edges, uint64_t now_ns);
/* Call just before the ticks end: finds the threads that sleep then. */
void sleep_edges_end(struct sleep_edges *edges);
/* Call after the ticks have ended: takes the samples of the threads that were found. */
void sleep_edges_pass(struct sleep_edges *edges);
