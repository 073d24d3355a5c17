/* SPDX-License-Identifier: MIT */
/* C++ and Rust names as people write them, without parameter lists, as in async-profiler: JavaThread::run. */
#ifndef SYM_DEMANGLE_H
#define SYM_DEMANGLE_H

#include <stdbool.h>

#include "base/buf.h"

#define DEMANGLE_MAX_INPUT 4096	 /* longer ones stay mangled */
#define DEMANGLE_MAX_OUTPUT 4096 /* the rest is cut; without the suffix */

#define DEMANGLE_PLT_SUFFIX "@plt" /* of entries of linkage tables: it stays */

/* Appends the readable name. False, and nothing appended, when the name is no mangled one. */
bool demangle(const char *name, struct buf *out);

#endif
