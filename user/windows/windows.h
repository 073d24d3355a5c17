/* SPDX-License-Identifier: MIT */
/*
 * A continuous recording in windows of fixed length. Sampling does not pause between windows: samples are assigned to
 * windows by their own time. A window is written when none of its samples can still arrive or wait for its other half.
 * That is at most JOIN_WAIT_NS and WINDOWS_SLACK_NS after its end. A forked child writes it from its copy of the
 * memory, so a slow disk does not delay the reading of the rings.
 */
#pragma once

#include "base/map.h"
#include "event/options.h"

/* upper bound of the time from a sample to its record in the ring; it is much less */
#define WINDOWS_SLACK_NS (100ull * 1000 * 1000)

struct agents;
struct intern_move;
struct pending;
struct process_table;

/* Nothing here is owned. */
struct windows_deps {
	/* window_ns is 0 without windows. It, the outputs, the style and the folder may change between two windows. */
	const struct options *options;
	struct profile *profile;
	struct pending *pending;
	const struct process_table *processes;
	const struct agents *agents;
	void (*report)(void *context); /* adds the window's facts, and the losses since the start, to the profile */
	void (*before_write)(void *context); /* called in the child that writes */
	void (*release_dead)(void *context); /* frees agents and processes that have ended */
	void *context;
};

struct windows {
	struct windows_deps of;
	uint64_t last_ns; /* time at which the recording will end; 0 = not known */
	uint64_t written; /* includes windows that could not be written */
	uint64_t end_realtime_ns; /* end of the window that was written last */
	struct map lost; /* hash of a loss's text -> its count at the end of the previous window */
	size_t live_strings; /* size of the profile's strings when all of them were last in use */
	pid_t writer; /* the child that writes; 0 = none */
	size_t writer_bytes; /* size of the profile that it writes; 0 = none */
	uint64_t writer_ns; /* when it was started */
	uint64_t writer_samples; /* number of samples in its window */
	bool is_killed; /* the writer was killed because it took too long */
	bool is_failing; /* the last window could not be written, and this was reported */
};

/* Returns 0, or -errno after reporting the error. */
int windows_open(struct windows *windows, const struct windows_deps *of);
/* Call when ticks have started, for a recording of this length; 0: until it is stopped. */
void windows_start(struct windows *windows, uint64_t started_ns, uint64_t duration_ns);
/* Call often. All samples taken before read_ns have been read. */
void windows_step(struct windows *windows, uint64_t read_ns);
/* Call when all samples are decided: writes the rest, a shorter window. 0, or -errno after reporting the error. */
int windows_end(struct windows *windows, uint64_t ended_ns);
void windows_release(struct windows *windows);
