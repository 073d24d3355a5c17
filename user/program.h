/* SPDX-License-Identifier: MIT */
/* Which program a JVM runs, as its process, its arguments and its own counters tell. None of it is to be trusted. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "base/buf.h"
#include "proc/process.h"

/* Appends "java: app.jar". 0 or -errno, for instance of a JVM that does not tell yet. */
int program_name(const struct process *process, struct buf *name);
/* Appends the path it was started by, as its first argument says where that is one, else its executable. */
void program_executed_as(const struct process *process, struct buf *name);
/* Appends "buildid:…" of the library, as gProfiler names it, or nothing. */
void program_libjvm(const struct process *process, const struct mapping *libjvm, struct buf *id);
/*
 * Appends what vm_flags_print() makes of the VM's options: of its counters, or, where it keeps none, of its arguments.
 * 0 or -errno: one that is young may just not have counters yet.
 */
int program_vm_flags(const struct process *process, bool is_young, struct buf *out);
/* Appends ", spark: NAME" if it is an application of Spark, with its id where the name cannot be had. */
void program_add_spark(pid_t pid, struct buf *application);

#endif
