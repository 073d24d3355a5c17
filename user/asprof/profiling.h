/* SPDX-License-Identifier: MIT */
/*
 * The state of a process that async-profiler's commands share, idle or recording, and what each command does to it. All
 * sides that ask, `asprof`, Java and the JVM's command line, see the same.
 */
#ifndef ASPROF_PROFILING_H
#define ASPROF_PROFILING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "asprof/arguments.h"
#include "asprof/meeting.h"
#include "asprof/recording.h"

struct profiling {
	pid_t pid;
	uint64_t start_ticks;
	struct recording recording;
	struct asprof_arguments begun; /* with what the recording was started */
	struct buf begun_file; /* its file, absolute; empty: none */
	uint64_t until_ns; /* timeout or loop, CLOCK_MONOTONIC; 0: none */
	unsigned int number; /* of the file, for %n */
	struct duet_question agent; /* where the agent that is loaded listens; name[0] is 0: none is known */
	uint64_t used_ns; /* when a command came or a recording ended last */
};

void profiling_init(struct profiling *profiling, pid_t pid, uint64_t start_ticks);
/* Does what the question asks. Fills *answer, which was initialized empty; the caller releases it. */
void profiling_answer(struct profiling *profiling, const struct meeting_question *question,
		      struct meeting_answer *answer);
/* Call a few times a second: ends what is due, writes its file, and begins again if it is a loop. */
void profiling_step(struct profiling *profiling);
void profiling_end(struct profiling *profiling); /* ends a recording that runs, and writes its file */
void profiling_release(struct profiling *profiling);

static inline bool profiling_is_running(const struct profiling *profiling)
{
	return profiling->recording.child;
}

#endif
