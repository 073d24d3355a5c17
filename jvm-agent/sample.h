/* SPDX-License-Identifier: MIT */
/* The signal handler: one sample of the thread it runs on. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <signal.h>

struct session;
struct slot;

void sample_handler(int signo, siginfo_t *info, void *context);

/* Walk buffers for the handlers of one session; NULL when there is no memory. */
struct slot *sample_slots_new(int java_depth);
void sample_slots_free(struct slot *slots, int java_depth);

#endif
