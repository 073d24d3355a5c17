/* SPDX-License-Identifier: MIT */
/*
 * Compilations that were freed a moment ago. A sample may have hit one just before that, and the loader may not have
 * asked for it yet. Callable on any thread, not in signal handlers.
 */
#ifndef JVM_KEPT_H
#define JVM_KEPT_H

#include <stdbool.h>

#include "hotspot/nmethods.h"

/* Takes ownership of the record. */
void kept_add(struct nmethod_record *record);
/* Copies the record with this id; the caller releases the copy. Returns false when there is none, or no memory. */
bool kept_copy(uint32_t id, struct nmethod_record *ret);
/*
 * The first frees the records that are too old for the loader to ask for. The second frees all records, when the loader
 * has left.
 */
void kept_forget_old(void);
void kept_forget(void);

#endif
