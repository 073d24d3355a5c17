/* SPDX-License-Identifier: MIT */
/* one.profiler.Recording: Java code asks it whether a recording runs that wants its spans. */
#ifndef EVENT_RECORDING_H
#define EVENT_RECORDING_H

/*
 * Notifies the class, if the program has loaded it, whether spans are recorded now. Called on a thread that is attached
 * to the JVM.
 */
void recording_notify_state(void);

#endif
