/* SPDX-License-Identifier: MIT */
/*
 * The process that makes a recording: `duet record`. It first does all that needs no agent, such as loading BPF, and
 * then waits for the request to begin. One that was started ahead begins at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "duet_recorder.h"
#include "recorder/arguments.h"

struct recording_subject {
	pid_t pid;
	uint64_t max_bytes; /* limit of the child's `part`; set by recording.c */
	const struct duet_question *agent; /* where the agent that the process has loaded listens; NULL: attach one */
};

/* A child that waits. Initialize with RECORDING_CHILD_NONE. */
struct recording_child {
	pid_t pid; /* 0: none */
	int gate; /* a socket; the child ends when it is closed */
	int part; /* a file in memory that gets the samples, in the format duet */
	int log; /* a file in memory that gets the child's messages */
	struct options options; /* of its recording, without the process and the events */
	pid_t subject;
	struct buf events; /* as in -e */
};

#define RECORDING_CHILD_NONE {.gate = -1, .part = -1, .log = -1}

/*
 * Starts a child. subject->agent is not used. Returns 0, or -errno with one sentence in `why` and nothing to release.
 */
int recording_child_start(struct recording_child *ret, const struct recording_subject *subject,
			  const struct asprof_arguments *arguments, struct buf *why);
/* Returns true if the child waits to make the recording that the arguments describe. */
bool recording_child_fits(const struct recording_child *child, const struct recording_subject *subject,
			  const struct asprof_arguments *arguments);
/*
 * Requests the child to begin, and says where the agent listens (struct recording_subject). Returns 0 or -errno. On
 * success the pid and the descriptors `part` and `log` belong to the caller, and *child is none.
 */
int recording_child_begin(struct recording_child *child, const struct duet_question *agent);
void recording_child_end(struct recording_child *child); /* ends a child that waits; does nothing if there is none */

/* For a new child process of the recorder: replaces its stdout and stderr. It gets SIGINT when the recorder ends. */
void recording_child_redirect(pid_t recorder, int out, int log);
