/* SPDX-License-Identifier: MIT */
/* Which signal the agent takes. Once installed, its handler stays: a late signal without one would end the JVM. */
#ifndef SIGNALS_H
#define SIGNALS_H

/*
 * Installs the handler on a real-time signal that nobody uses: `wanted` if it is
 * not 0, else the one of the last session, else the first that is free, and not waited for. The signal, or -EBUSY.
 */
int signals_take_realtime(int wanted);
/* The same for SIGPROF, which setitimer() insists on. */
int signals_take_prof(void);

#endif
