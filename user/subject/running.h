/* SPDX-License-Identifier: MIT */
/* The JVMs that run here, and those that run a program of some name. All they say of themselves is untrusted. */
#pragma once

#include "base/vec.h"
#include "proc/process.h"

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
