/* SPDX-License-Identifier: MIT */
/* The mappings of processes that ended before /proc could be asked: without them their user frames have no names. */
#ifndef SHORT_LIVED_H
#define SHORT_LIVED_H

#include "duet_record.h"
#include "proc/process.h"

struct session;

/* Once a step: so that nothing is lost for want of room. */
void short_lived_read(struct session *session);
/*
 * Where a process's mappings could not be read, or were read when it had become another program already: those that it
 * had when it was sampled, if the kernel's records go back so far.
 */
void short_lived_map(struct session *session, struct process *process, const struct duet_sample *sample);
void short_lived_release(struct session *session);

#endif
