/* SPDX-License-Identifier: MIT */
/* Finds which program a JVM runs, from its process, its arguments and its own counters. All of these are untrusted. */
#pragma once

#include "base/buf.h"
#include "proc/process.h"

/* Appends "java: app.jar". Returns 0 or -errno, e.g. when the JVM has not published its command yet. */
int program_name(const struct process *process, struct buf *name);
/*
 * Appends its arguments, each with a NUL after it. The helper reads them: the kernel takes them from the process's
 * memory, where the process may have anything. Returns 0 or -errno.
 */
int program_arguments(pid_t pid, struct buf *arguments);
/* Appends the path it was started as: its first argument if that is an absolute path, else its executable. */
void program_executed_as(const struct process *process, struct buf *name);
/* Appends "buildid:…" of the library, in gProfiler's form, or nothing. */
void program_libjvm(const struct process *process, const struct mapping *libjvm, struct buf *id);
/*
 * Appends the VM's options in the form of vm_flags_print(): from its counters, or from its arguments if it has no
 * counters. Returns 0 or -errno. A young JVM without counters is an error, because it may still create them.
 */
int program_vm_flags(const struct process *process, bool is_young, struct buf *out);
/* Appends the JVM's performance counters (attach/hsperfdata.h). Returns 0 or -errno. */
int program_counters(const struct process *process, struct buf *counters);
/* Appends "17.0.15": by its counters, or as the file `release` of its JDK has it. Returns 0 or -errno. */
int program_java_version(const struct process *process, struct buf *version);
/* Appends ", spark: NAME" for a Spark application; its id if the name is unknown. */
void program_add_spark(pid_t pid, struct buf *application);
