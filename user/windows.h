/* SPDX-License-Identifier: MIT */
/*
 * A continuous recording in windows of fixed length. Sampling does not pause between windows: samples are assigned to
 * windows by their own time. A window is written when none of its samples can still arrive or wait for its other half,
 * i.e. at most JOIN_WAIT_NS and WINDOWS_SLACK_NS after its end. A forked child writes it from its copy of the memory,
 * so a slow disk does not delay the reading of the rings.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "join/outcomes.h"

/* upper bound of the time from a sample to its record in the ring; it is much less */
#define WINDOWS_SLACK_NS (100ull * 1000 * 1000)

struct session;
struct windows {
	uint64_t written; /* includes windows that could not be written */
	uint64_t end_realtime_ns; /* end of the window that was written last */
	struct outcomes before; /* at the end of the previous window */
	struct map lost; /* hash of a loss's text -> its count at the end of the previous window */
	size_t live_strings; /* size of the profile's strings when all were last in use */
	pid_t writer; /* the child that writes; 0 = none */
	uint64_t writer_ns; /* when it was started */
	uint64_t writer_samples; /* number of samples in its window */
	bool is_killed; /* the writer was killed because it took too long */
	bool is_failing; /* the last window could not be written, and this was reported */
};

/* Returns 0, or -errno after reporting the error. */
int windows_open(struct session *session);
void windows_start(struct session *session); /* call when ticks have started */
void windows_step(struct session *session); /* call after each session_step() */
/* Call when all samples are decided: writes the rest, the last window being shorter. Returns 0 or -errno, reported. */
int windows_end(struct session *session);
void windows_release(struct session *session);

#endif
