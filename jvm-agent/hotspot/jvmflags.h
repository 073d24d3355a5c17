/* SPDX-License-Identifier: MIT */
/* The JVM's flags (-XX:+Flag), as they are set. */
#ifndef HOTSPOT_JVMFLAGS_H
#define HOTSPOT_JVMFLAGS_H

#include <stdbool.h>

void jvmflags_open(void); /* called by jvmstructs_open(): finds the table */
/* Returns the value of a flag of type bool; false when it is not found. */
bool jvmflags_is_set(const char *name);

#endif
