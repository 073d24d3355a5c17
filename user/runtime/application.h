/* SPDX-License-Identifier: MIT */
/* The name of the program that a JVM runs: "java: app.jar", "java: com.acme.Main". */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define APPLICATION_PREFIX "java: "
#define APPLICATION_MAX 255 /* bytes of a name; the rest is cut off */

/*
 * Returns the argument that names the program: a jar, class or module. `arguments` are those of /proc/PID/cmdline, each
 * ending in NUL. Returns NULL if the process was not started by the java launcher, or if the program is named in an
 * @options file.
 */
const char *application_find(const char *arguments, size_t len);
/* Appends the name of the program in such arguments. 0, or -ENOENT if there is none. */
int application_from_arguments(const char *arguments, size_t len, struct buf *out);
/* The same from sun.java.command (the counter sun.rt.javaCommand): jar or class, then the arguments. */
int application_from_command(const char *command, struct buf *out);
