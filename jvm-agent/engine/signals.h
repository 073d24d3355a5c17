/* SPDX-License-Identifier: MIT */
/* Chooses the signal. A real-time signal keeps its handler for good: a late signal would end the JVM. */
#pragma once

#include <stdbool.h>

/*
 * Installs the handler on a real-time signal that nobody uses: `wanted` if it is not 0, else the signal of the last
 * stay, else the first that is free and that no thread waits for. Returns the signal, -EBUSY, or another -errno.
 */
int signals_take_realtime(int wanted);
/*
 * The same for SIGPROF, the only signal that setitimer(ITIMER_PROF) sends, or for SIGURG, which by default is ignored: a
 * late one harms neither this program nor one that it executes.
 */
int signals_take(int signo);
/* Returns false while another profiler has replaced our handler of this signal. */
bool signals_have(int signo);
/*
 * Gives SIGPROF or SIGURG up, if the handler is still ours. SIGPROF becomes SIG_IGN: JFR does not take a signal that
 * has a handler, and a late one ends nobody.
 */
void signals_leave(int signo);
