/* SPDX-License-Identifier: MIT */
/* The trace and the span that the calling thread works for, as the program has set them in this library or others. */
#ifndef SAMPLE_CONTEXT_H
#define SAMPLE_CONTEXT_H

#include "duet_context.h"

/* Sets *ret if the thread has one. Async-signal-safe: allocates no thread-local memory. */
void context_here(struct duet_context *ret);
/* Makes this record, which stays the caller's, the calling thread's. NULL: it has none. Not for signal handlers. */
void context_set(struct duet_context_record *record);

#endif
