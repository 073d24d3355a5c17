/* SPDX-License-Identifier: MIT */
/* Which signal the agent takes. A real-time one keeps its handler: a late signal without one would end the JVM. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdbool.h>

/*
 * Installs the handler on a real-time signal that nobody uses: `wanted` if it is
 * not 0, else the one of the last stay, else the first that is free, and not waited for. The signal, or -EBUSY.
 */
int signals_take_realtime(int wanted);
/* The same for SIGPROF, which setitimer() insists on. */
int signals_take_prof(void);
/* Not while another profiler has put its handler in the place of ours. */
bool signals_have_prof(void);
/* Others want it too, and JFR takes none that has a handler. Ignored, a late one ends nobody. */
void signals_leave_prof(void);

#endif
