/* SPDX-License-Identifier: MIT */
/* The signal handler: one sample of the thread it runs on. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <signal.h>

struct stay;
struct walk_slot;

void sample_handler(int signo, siginfo_t *info, void *context);

/* Allocates the walk buffers for the handlers of one stay. Returns NULL when there is no memory. */
struct walk_slot *sample_slots_new(int java_depth);
void sample_slots_free(struct walk_slot *slots, int java_depth);

#endif
