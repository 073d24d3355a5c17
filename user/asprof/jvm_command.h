/* SPDX-License-Identifier: MIT */
/*
 * Commands for the JVM itself, which `asprof` passes on by HotSpot's attach protocol: load, jcmd, threaddump, dumpheap,
 * inspectheap.
 */
#ifndef ASPROF_JVM_COMMAND_H
#define ASPROF_JVM_COMMAND_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Sends the command and its words, and prints the reply. Returns the exit code: what the JVM answered, of `load` what
 * the library returned, or 1 after reporting why the JVM could not be asked.
 */
int jvm_command_run(pid_t pid, const char *name, char **words, int count);

#endif
