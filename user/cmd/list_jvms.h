/* SPDX-License-Identifier: MIT */
/* The JVMs and containers that run here, for people and for the shells' completion. */
#pragma once

#include "base/buf.h"

/* Prints a table of the JVMs, and the containers. Takes a fifth of a second. Returns 0 or -errno. */
int list_jvms(void);
void list_jvm_choices(struct buf *out); /* appends "PID<tab>program", one per line */
void list_container_choices(struct buf *out); /* appends names, one per line */
