/* SPDX-License-Identifier: MIT */
/* Finds which program a JVM runs, from its process, its arguments and its own counters. All of these are untrusted. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
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

/* The JVMs that run here, and those that run a program of some name. All they say of themselves is untrusted. */
struct running_jvm {
	const struct process *process; /* owned by the table */
	char *program; /* "shop.jar", "com.acme.Main", "module/com.acme.Main"; if unknown, the process's name */
};

struct running {
	struct process_table processes;
	struct vec(struct running_jvm) jvms; /* by pid */
};

/*
 * Finds those whose program has this name: a jar without its folders, or a class with or without its package or module;
 * NULL for all. The helper runs from this call to running_release(), which is needed in any case. Returns 0 or -errno.
 */
int running_find(struct running *ret, const char *name);
void running_release(struct running *running);
bool running_is_called(const char *program, const char *name);
const char *running_short_name(const char *program); /* a class without its package and module; a jar as it is */
/* Appends "123 (shop.jar), 124 (shop.jar)", and "and 7 more" for those above the first eight. */
void running_list(const struct running *running, struct buf *out);
