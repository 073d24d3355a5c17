/* SPDX-License-Identifier: MIT */
/*
 * One recording of a process: `duet record` in a child, which writes its samples into memory that we share, in the
 * format duet. All reports are made from that, during the recording and after it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/vec.h"
#include "duet_recorder.h"
#include "jvms/flight_recording.h"
#include "recorder/arguments.h"
#include "recorder/recorder_socket.h"
#include "recorder/report_shape.h"

/*
 * The process that makes a recording: `duet record`. It first does all that needs no agent, such as loading BPF, and
 * then waits for the request to begin. One that was started ahead begins at once.
 */

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

#define RECORDING_CHILD_NONE {.gate = -1, .part = -1, .log = -1, .events = BUF_NONE}

/* Starts a child, without subject->agent. Returns 0, or -errno with a sentence in `why` and nothing to release. */
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

struct recording {
	pid_t child; /* 0: no recording runs */
	int log; /* the child's messages; -1 = none */
	uint64_t begun_ns; /* CLOCK_MONOTONIC; of a loop's window, its begin */
	uint64_t ended_ns;
	const struct asprof_arguments *begun; /* of the last start or resume; not owned */
	struct report_shape shape; /* of all reports */
	bool is_shaped; /* its only part is another user's, from recording_report_of() */
	bool is_ending; /* the process is ending or has ended */
	struct flight_recording jdk; /* the JVM's own recording; started with jfrsync */
	struct buf jdk_why; /* why its events are missing; empty: they are not */
	struct writer_jfr jfr; /* options that JFR files have from the start command */
	struct buf settings; /* the same */
	uint64_t begun_cycles; /* clock_cycles() at cycles_ns; 0: nanoseconds are the ticks of JFR files */
	uint64_t cycles_ns; /* CLOCK_MONOTONIC */
	struct thread_choices choices; /* of the program; they apply if the filter has no text */
	const char *source; /* writer_options.source of all reports; static text */
	uint64_t part_ns; /* the last part has nothing from before, CLOCK_REALTIME */
	uint64_t window_ns; /* begin of the samples of all reports, CLOCK_REALTIME; 0: that of the recording */
	uint64_t from_ns, until_ns; /* the samples of the report that is being made, CLOCK_REALTIME */
	bool is_report_empty; /* the last report shows stacks alone, and has none */
	bool is_thin_reported; /* for the caller: recording_is_thin() was reported to the user */
	struct recording_child waiting; /* for the next recording */
	struct vec(int) parts; /* descriptors; the last one is the current recording, those before it were resumed */
};

/* Of all parts. */
struct recording_sums {
	uint64_t samples;
	uint64_t walk_ns; /* CPU time of taking them */
};

void recording_init(struct recording *recording);
/*
 * Returns when the first sample may be taken: 0, or -errno with why it cannot be recorded. Forgets what was before. The
 * arguments must stay until the recording is released or started again.
 */
int recording_start(struct recording *recording, const struct recording_subject *subject,
		    const struct asprof_arguments *arguments, struct buf *why);
/* The same; reports will also contain what was recorded before. */
int recording_resume(struct recording *recording, const struct recording_subject *subject,
		     const struct asprof_arguments *arguments, struct buf *why);
/*
 * Prepares a recording that may be started soon, so that its start takes less time. If this fails, or the arguments are
 * others then, the start does the work.
 */
void recording_prepare(struct recording *recording, const struct recording_subject *subject,
		       const struct asprof_arguments *arguments);
/* Returns false if another window needs another recording: this one is long, or has samples that come at its end. */
bool recording_can_go_on(const struct recording *recording);
/* Takes samples of threads that sleep. Returns the time of the end, CLOCK_REALTIME; some samples arrive later. */
uint64_t recording_end_window(const struct recording *recording);
/* Leaves out of all reports what was recorded before this time, CLOCK_REALTIME. */
void recording_go_on(struct recording *recording, uint64_t window_ns);
/* Ends the child. What it recorded stays. */
void recording_stop(struct recording *recording);
/* Call after SIGCHLD. Returns true if the child has ended by itself because the process has ended. */
bool recording_has_ended(struct recording *recording);
/* Makes a report of all samples until now. Returns its descriptor, sealed, or -errno with one sentence in `why`. */
int recording_report(struct recording *recording, const struct asprof_arguments *arguments, struct buf *why);
/* The same of the samples between these times, CLOCK_REALTIME. */
int recording_report_between(struct recording *recording, const struct asprof_arguments *arguments, uint64_t from_ns,
			     uint64_t until_ns, struct buf *why);
/* The same of a recording that another user's recorder has sent: `data`, which it closes. */
int recording_report_of(int data, const struct asprof_arguments *arguments, struct buf *why);
int recording_sum(struct recording *recording, struct recording_sums *ret); /* returns 0 or -errno */
/* Returns true if the recording has neared its limit of memory, so that fewer samples are kept. */
bool recording_is_thin(const struct recording *recording);
uint64_t recording_bytes(const struct recording *recording); /* memory that it takes */
void recording_release(struct recording *recording);

/* async-profiler's answers about the state of a recording: status, metrics, list and version; and their log. */

/* Appends the answer. `begun`: arguments with which the recording was started. */
void state_print(struct recording *recording, const struct asprof_arguments *begun, enum asprof_action action,
		 struct buf *text);
struct recording_sums state_sums(struct recording *recording); /* {0} before the first recording */
uint64_t state_seconds(const struct recording *recording); /* since it began; of one that has ended, its length */

/*
 * Appends the answer's lines, which the library would print, to the file of log=FILE, which is made if need be, and
 * clears them. `with_report`: the report follows
 * and is closed. If the file cannot be opened, everything stays as it is; if it cannot be written, the lines are lost.
 */
void answer_log_write(const char *path, struct recorder_answer *answer, bool with_report);
