/* SPDX-License-Identifier: MIT */
/* Chooses the signal. A real-time signal keeps its handler for good: a late signal would end the JVM. */
#pragma once

#include <stdbool.h>

/*
 * Installs the handler on a real-time signal that nobody uses: `wanted` if it is not 0, else the signal of the last
 * stay, else the first that is free and that no thread waits for. Returns the signal, -EBUSY, or another -errno.
 */
int signals_take_realtime(int wanted);
/* The same for SIGPROF, the only signal that setitimer(ITIMER_PROF) sends. */
int signals_take_prof(void);
/*
 * The same for SIGURG. Its default action is to be ignored, so that signals_leave_urgent() can restore it at any time,
 * and a late signal harms neither this program nor one that it executes.
 */
int signals_take_urgent(void);
void signals_leave_urgent(void); /* if the handler is still ours */
/* Returns false while another profiler has replaced our handler of SIGPROF. */
bool signals_have_prof(void);
/*
 * Gives SIGPROF up: other profilers use it too, and JFR does not take a signal that has a handler. Sets it to SIG_IGN,
 * so that a late SIGPROF ends nobody.
 */
void signals_leave_prof(void);
