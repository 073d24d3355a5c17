/* SPDX-License-Identifier: MIT */
/* What kind of work a stack is, for --classify. */
#ifndef WRITERS_SHARED_CATEGORY_H
#define WRITERS_SHARED_CATEGORY_H

#include <stddef.h>

#include "base/intern.h"

struct path_step;

/*
 * Returns the name of the category, with async-profiler's names: [gc], [jit] and [vm] for threads of the JVM;
 * [class_load], [class_init], [class_resolve], [class_verify], [lambda_init] for what loads code; else what runs:
 * [Interpreter], [compiled], [native], [vtable_stubs], [c2i_adapter], or [vm] for libjvm's code that Java has called.
 * `steps` are leaf first; one without a frame is passed over.
 */
const char *category_of(const struct intern *strings, const struct path_step *steps, size_t depth);

#endif
