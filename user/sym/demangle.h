/* SPDX-License-Identifier: MIT */
/* Makes C++ and Rust names readable. Parameter lists are left out, as in async-profiler: JavaThread::run. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

#define DEMANGLE_MAX_INPUT 4096	 /* bytes; longer names stay mangled */
#define DEMANGLE_MAX_OUTPUT 4096 /* bytes without the suffix; the rest is cut off */

#define DEMANGLE_PLT_SUFFIX "@plt" /* of entries in procedure linkage tables; it is kept */

/* Appends the readable name. Returns false and appends nothing if the name is not a mangled one. */
bool demangle(const char *name, struct buf *out);
