/* SPDX-License-Identifier: MIT */
/* The interpreter's code, piece by piece: where in it a frame is not whole. */
#ifndef AGENT_CODELETS_H
#define AGENT_CODELETS_H

#include "duet_jvm.h"

/* Notes in *ret what this codelet tells, whose name HotSpot gives; the interpreter's bounds are in *ret already. */
void codelet_publish(struct duet_jvm_layout *ret, const char *name, uintptr_t at, uint32_t bytes);

#endif
