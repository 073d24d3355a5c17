/* SPDX-License-Identifier: MIT */
/* What becomes of a recording when the agent of a JVM cannot be brought in, or the JVM cannot be read from outside. */
#ifndef JVMS_FAILURES_H
#define JVMS_FAILURES_H

#include "jvms/jvms.h"

/* Call when an agent or a reader has failed: plans what is done instead, and reports it. */
void failures_note(struct jvms *jvms, struct agent *agent);

#endif
