/* SPDX-License-Identifier: MIT */
/* Mappings of processes that ended before /proc was read. Without them their user frames have no names. */
#ifndef SHORT_LIVED_H
#define SHORT_LIVED_H

#include "duet_record.h"
#include "proc/process.h"

struct session;

/* Call once a step, so that the kernel's buffers do not overflow. */
void short_lived_read(struct session *session);
/*
 * Gives the process the mappings that it had at the time of the sample, if the kernel's records reach back so far. Does
 * so only if its mappings could not be read, or were read after it had become another program.
 */
void short_lived_map(struct session *session, struct process *process, const struct duet_sample *sample);
void short_lived_release(struct session *session);

#endif
