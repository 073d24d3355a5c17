/* SPDX-License-Identifier: MIT */
/* Which program a JVM runs, as its process, its arguments and its own counters tell. None of it is to be trusted. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "base/buf.h"
#include "proc/process.h"

/* Appends "java: app.jar". 0 or -errno, for instance of a JVM that does not tell yet. */
int program_name(const struct process *process, struct buf *name);
/*
 * What the kernel has laid above the first stack, a path: by now the process's own words. "" when it cannot be read.
 */
void program_executed_as(pid_t pid, char *name, size_t size);
/* Appends ", spark: NAME" if it is an application of Spark, with its id where the name cannot be had. */
void program_add_spark(pid_t pid, struct buf *application);

#endif
