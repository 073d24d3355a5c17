/* SPDX-License-Identifier: MIT */
/*
 * Finds the options of a JVM that decide whether the JVM prints a warning when an agent is loaded, and whether SIGQUIT
 * is safe: with -XX:+DisableAttachMechanism the JVM prints a thread dump to the application's stdout, with -Xrs it
 * dies.
 *
 * Sources are read in HotSpot's order, and the last one wins: JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS (JDK 9+), the command
 * line with its @files, -XX:Flags= and -XX:VMOptionsFile= files, _JAVA_OPTIONS. Last comes what the JVM itself wrote to
 * its hsperfdata, which also has the options of a program that embeds the JVM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "attach/visit.h"
#include "base/buf.h"

struct vm_options {
	bool attach_disabled; /* -XX:+DisableAttachMechanism */
	bool reduced_signals; /* -Xrs, -XX:+ReduceSignalUsage */
	bool agents_enabled; /* -XX:+EnableDynamicAgentLoading was given (not only on by default) */
	int jdk; /* 8, 11, 17…; 0 when unknown */
};

/* Parses /proc/PID/cmdline up to the main class. Adds option files to `files`, one a line, unless it is NULL. */
void vm_options_parse_command(struct vm_options *options, const char *bytes, size_t len, struct buf *files);
/* Parses words, quoted or not: of an environment variable, an options file, or hsperfdata's java.rt.vmArgs. */
void vm_options_parse_text(struct vm_options *options, const char *text, struct buf *files);

/* What the JVM was started with. */
struct vm_words {
	struct buf variables; /* environ */
	struct buf command; /* cmdline */
};

/* Reads environ and cmdline; call before the child gives up the loader's rights. Skips what cannot be read. */
void vm_words_read(struct vm_words *words, const struct visit *visit);
void vm_words_release(struct vm_words *words);
/* Parses the words, and the option files that they name; call with the rights of the JVM's user. */
void vm_options_read(struct vm_options *options, const struct vm_words *words, const struct visit *visit);
/*
 * Returns true if the JVM prints a warning to its stderr when an agent is loaded: JDK 21 and later (JDK-8307478) unless
 * the option allows agents. Also returns true when the JDK is not known.
 */
bool vm_options_warn_of_agents(const struct vm_options *options);
/* Reads hsperfdata; call after vm_options_read(), with the rights of the JVM's user. */
void vm_options_read_hsperfdata(struct vm_options *options, const struct visit *visit);
