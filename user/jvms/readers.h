/* SPDX-License-Identifier: MIT */
/* The processes that read JVMs from outside: starts them, and replaces those that end before their JVM. */
#ifndef JVMS_READERS_H
#define JVMS_READERS_H

#include <stdbool.h>

#include "jvms/jvms.h"

/* The JVM is read from outside, and BPF walks its frames. Returns why not (static text); NULL if it is read. */
const char *readers_start(struct jvms *jvms, struct process *process);
/*
 * Call when a reader has ended or could not begin. If its JVM still runs, sets when to call readers_replace(), and
 * tells the user. The pause grows with each try, and the number of tries is limited.
 */
void readers_replace_later(const struct jvms *jvms, struct agent *reader);
/* Starts another reader in place of this one. Returns false if the JVM needs an agent instead. */
bool readers_replace(struct jvms *jvms, struct agent *reader);

#endif
