/* SPDX-License-Identifier: MIT */
/* The processes that read JVMs from outside, and what is done when one, or an agent, has failed. */
#pragma once

#include <stdbool.h>

#include "jvms/jvms.h"

/* Reads the JVM from outside from now on. Returns NULL, or why it cannot be read (static text). */
const char *readers_start(struct jvms *jvms, struct process *process);
/*
 * Call when a reader has ended or could not begin. If its JVM still runs, sets when to call readers_replace(), and
 * reports it. The pause grows with each try, and the number of tries is limited.
 */
void readers_replace_later(const struct jvms *jvms, struct agent *reader);
/* Starts another reader to replace this one. Returns false if the JVM needs an agent instead. */
bool readers_replace(struct jvms *jvms, struct agent *reader);

/* Returns why the JVM cannot be read, a part of a sentence; valid while the reader is. */
const char *readers_why_unread(const struct agent *reader);
/* Warns that the threads of this JVM have the kernel's names, if they do. */
void readers_report_unnamed(struct jvms *jvms, const struct agent *agent);

/* Call when an agent or a reader has failed: plans what is done instead, and reports it. */
void readers_note_failure(struct jvms *jvms, struct agent *agent);
