/* SPDX-License-Identifier: MIT */
/*
 * Compilations that were freed a moment ago: a sample may have met them just before, and the loader not have asked yet.
 */
#ifndef KEPT_H
#define KEPT_H

#include <stdbool.h>

#include "nmethods.h"

/* Takes the record over. */
void kept_add(struct nmethod_record *record);
/* The one with this id, which the caller releases; false when there is none, or no memory. */
bool kept_copy(uint32_t id, struct nmethod_record *ret);
/* Frees what is too old to be asked for, or all when the loader has gone. */
void kept_forget_old(void);
void kept_forget(void);

#endif
