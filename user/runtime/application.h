/* SPDX-License-Identifier: MIT */
/* Which program a JVM runs, as people call it: "java: app.jar", "java: com.acme.Main". */
#ifndef RUNTIME_APPLICATION_H
#define RUNTIME_APPLICATION_H

#include <stddef.h>

#include "base/buf.h"

#define APPLICATION_PREFIX "java: "
#define APPLICATION_MAX 255 /* bytes of a name; the rest is cut off */

/*
 * The argument that names the program: jar, class or module; in /proc/PID/cmdline, arguments that end in NUL. NULL when
 * that is not the java launcher's or what it starts stands in a file (@options).
 */
const char *application_find(const char *arguments, size_t len);
/* From the same. 0 and the name appended; -ENOENT where there is none. */
int application_from_arguments(const char *arguments, size_t len, struct buf *out);
/* From the property sun.java.command, counter sun.rt.javaCommand: jar or class, then arguments. 0 or -ENOENT. */
int application_from_command(const char *command, struct buf *out);

#endif
