/* SPDX-License-Identifier: MIT */
/* The interpreter's codelets: the places in its code where a frame is not complete. */
#ifndef HOTSPOT_CODELETS_H
#define HOTSPOT_CODELETS_H

#include "duet_jvm.h"

/*
 * Records in *ret what the walk needs for one codelet. `name` is HotSpot's name of the codelet. The interpreter's
 * bounds must be in *ret already.
 */
void codelet_publish(struct duet_jvm_layout *ret, const char *name, uintptr_t at, uint32_t bytes);

#endif
