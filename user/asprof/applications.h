/* SPDX-License-Identifier: MIT */
/* Finds a JVM by the program that it runs. */
#ifndef ASPROF_APPLICATIONS_H
#define ASPROF_APPLICATIONS_H

#include <sys/types.h>

#include "base/buf.h"

/*
 * `target` is a pid; "jps" for the newest JVM; or the name of a program as jps prints it, a class without its package
 * or a jar. Returns the pid, or -errno with the message in `why`.
 */
pid_t applications_find(const char *target, struct buf *why);

#endif
