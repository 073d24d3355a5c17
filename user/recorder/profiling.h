/* SPDX-License-Identifier: MIT */
/*
 * The state of a process that async-profiler's commands share (idle or recording), and what each command does.
 * `asprof`, Java and the JVM's command line see the same state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "recorder/arguments.h"
#include "recorder/recorder_socket.h"
#include "recorder/recording.h"
#include "recorder/server.h"

struct profiling {
	pid_t pid;
	uint64_t start_ticks;
	struct recording recording;
	struct asprof_arguments begun; /* the arguments with which the recording was started */
	struct buf begun_file; /* its file, absolute; empty: none */
	struct buf jfr_path; /* that file if it is JFR, without placeholders: they stand for the time of the begin */
	int jfr; /* that file if it is kept open; else -1 */
	uint64_t chunk_ns; /* time from which on it lacks samples, CLOCK_REALTIME */
	uint64_t chunk_at; /* recording_bytes() then */
	uint32_t chunk_row; /* writer_jfr.first_row of its next chunk, for a recording that is resumed */
	uint64_t until_ns; /* when the recording, or the window of a loop, ends, CLOCK_MONOTONIC; 0: it does not */
	uint64_t last_ns; /* the timeout, after which a loop begins no other recording, CLOCK_MONOTONIC; 0: none */
	uint64_t window_end_ns; /* of a window that will be written soon, CLOCK_REALTIME; 0: none */
	unsigned int number; /* number of the file, for %n */
	bool is_of_library; /* the recording was started by the library, not by `asprof` */
	bool is_program_forgotten; /* by profiling_forget_program(): what starts next has said so before */
	bool is_private; /* the recording, or what it resumed, has what processes of all users use, and we are root */
	struct duet_question agent; /* where the loaded agent listens; name[0] is 0: no agent is known */
	uint64_t others_ns; /* until when, CLOCK_MONOTONIC, dumps for another user have used up his share of the time */
	uint64_t used_ns; /* time of the last command or of the last end of a recording */
	struct server server; /* commands by HTTP */
	uint64_t prepare_ns; /* when the next recording is prepared, CLOCK_MONOTONIC; 0: it is not */
};

void profiling_init(struct profiling *profiling, pid_t pid, uint64_t start_ticks);
/* Executes the question. Fills *answer, which was initialized empty; the caller releases it. */
void profiling_answer(struct profiling *profiling, const struct recorder_question *question,
		      struct recorder_answer *answer);
/* Call some times a second: ends recordings that are due, writes their files, and begins again for a loop. */
void profiling_step(struct profiling *profiling);
/* Ends a running recording, and writes its file. A line about a failure is appended to `log`. */
void profiling_end(struct profiling *profiling, struct buf *log);
/* The process has become another program: ends the recording that the former one has started, without its file. */
void profiling_forget_program(struct profiling *profiling);
void profiling_release(struct profiling *profiling);

static inline bool profiling_is_running(const struct profiling *profiling)
{
	return profiling->recording.child;
}
