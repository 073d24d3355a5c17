/* SPDX-License-Identifier: MIT */
/*
 * A recording in fixed windows. Nothing stops between two: samples are put into windows by their own time, and one is
 * written when no sample of it can still come or wait for its other half, which takes a moment (at most JOIN_WAIT_NS
 * and WINDOWS_SLACK_NS). A child process writes, from the memory it has been forked with: a slow disk does not stop
 * the reading of the rings.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"

#define WINDOWS_SLACK_NS (100ull * 1000 * 1000) /* from a sample to its record in the ring: it is much less */

struct session;
struct session_stats;
struct windows {
	uint64_t written; /* also those that could not be */
	uint64_t end_realtime_ns; /* of the one that is written last */
	struct session_stats *before; /* as they were when the window before ended, owned */
	struct map lost; /* hash of a loss's text -> its count until then */
	size_t live_strings; /* bytes of the profile's strings when all of them were in use */
	pid_t writer; /* 0 for none */
	uint64_t writer_ns; /* since when */
	uint64_t writer_samples; /* of its window */
	bool is_killed; /* the writer, for it took too long */
	bool is_failing; /* the last window could not be written, and that was said */
};

/* 0, or -errno after the user has been told. */
int windows_open(struct session *session);
void windows_start(struct session *session); /* samples flow */
void windows_step(struct session *session); /* after each session_step() */
/* All samples are decided: what is left is written, the last window is a part of one. 0 or -errno, reported. */
int windows_end(struct session *session);
void windows_release(struct session *session);

#endif
