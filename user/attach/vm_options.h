/* SPDX-License-Identifier: MIT */
/*
 * Which options a JVM was started with, as far as they decide whether it says that an agent comes, and whether it may
 * be sent SIGQUIT: -XX:+DisableAttachMechanism makes it print a thread dump into the
 * application's stdout, -Xrs makes it die. Sources in HotSpot's order, the
 * last one wins: JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS (JDK 9+), the command
 * line with its @files, -XX:Flags= and -XX:VMOptionsFile= files, _JAVA_OPTIONS; then what
 * the JVM itself wrote down in its hsperfdata, which also knows an embedding program's options.
 */
#ifndef ATTACH_VM_OPTIONS_H
#define ATTACH_VM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/visit.h"
#include "base/buf.h"

struct vm_options {
	bool attach_disabled; /* -XX:+DisableAttachMechanism */
	bool reduced_signals; /* -Xrs, -XX:+ReduceSignalUsage */
	bool agents_enabled; /* -XX:+EnableDynamicAgentLoading, given and not the default */
	int jdk; /* 8, 11, 17…; 0 when unknown */
};

/* A /proc/PID/cmdline: words that end in NUL; stops at the main class. `files` (or NULL) gets @files, a line each. */
void vm_options_parse_command(struct vm_options *options, const char *bytes, size_t len, struct buf *files);
/* Words between blanks, quoted or not: an environment variable, an options file, hsperfdata's java.rt.vmArgs. */
void vm_options_parse_text(struct vm_options *options, const char *text, struct buf *files);

/* environ and cmdline, before the child gives up the loader's rights. What cannot be read is passed over. */
void vm_options_read(struct vm_options *options, const struct visit *visit);
/* JDK-8307478 (21): the JVM says on its stderr that an agent has come, unless told that it may. Also when not known. */
bool vm_options_warn_of_agents(const struct vm_options *options);
/* Afterwards, with the rights of the JVM's user. */
void vm_options_read_hsperfdata(struct vm_options *options, const struct visit *visit);

#endif
