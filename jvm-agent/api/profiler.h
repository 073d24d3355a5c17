/* SPDX-License-Identifier: MIT */
/*
 * async-profiler's commands, from the JVM's command line, Java or C programs in this process. They are sent to the
 * process's recorder. Before commands that begin a recording, this process's agent is made ready.
 */
#pragma once

#include "api/recorder_link.h"

#define PROFILER_VERSION "4.5" /* version of async-profiler with the same commands */

/* Returns true if the text is a command, and not a loader's text for options_parse(). */
int profiler_owns(const char *text);
/* Executes the arguments. Release *ret. */
void profiler_execute(enum duet_question_kind kind, const char *text, struct link_answer *ret);
void profiler_print_log(const struct link_answer *answer); /* to the stream that the arguments named */
/* The same for arguments of an agent; prints the answer. Returns the code for Agent_OnAttach. */
int profiler_execute_agent(const char *text);
/* Adds the thread to the filter of the recording that this process has begun, or removes it. */
void profiler_choose(int tid, bool is_added);
/* Keeps the arguments of an agent until profiler_begin(). Returns 0 or -ENOMEM. */
int profiler_keep(const char *text);
void profiler_begin(void); /* call when the JVM runs: executes the kept arguments */
/* Call when the process is about to end, and its agent still answers: the file of a recording is written now. */
void profiler_end(void);
