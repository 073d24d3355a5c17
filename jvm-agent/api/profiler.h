/* SPDX-License-Identifier: MIT */
/*
 * async-profiler's commands, as the JVM's command line, Java and C programs give them to this process: they go to its
 * recorder, and this process's agent is made ready for those that begin a recording.
 */
#ifndef API_PROFILER_H
#define API_PROFILER_H

#include <jni.h>

#include "recorder_link.h"

#define PROFILER_VERSION "4.5" /* of async-profiler whose commands are spoken */

/* True if the text is meant for this, and not one of a loader for options_parse(). */
int profiler_owns(const char *text);
/* Executes the arguments. Release *ret. */
void profiler_execute(enum duet_question_kind kind, const char *text, struct link_answer *ret);
void profiler_print_log(const struct link_answer *answer); /* to the stream that the arguments named */
/* The same for arguments of an agent: prints what there is to print. Returns the code for Agent_OnAttach. */
int profiler_execute_agent(const char *text);
/* Keeps the arguments of an agent until profiler_begin(). Returns 0 or -ENOMEM. */
int profiler_keep(const char *text);
void profiler_begin(void); /* the JVM runs: executes what was kept */
/* The process is about to end, and its agent still answers: the file of a recording that runs is written now. */
void profiler_end(void);

#endif
