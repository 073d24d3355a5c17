/* SPDX-License-Identifier: MIT */
/* For functions that linkage tables name in place of others. */
#ifndef HOOK_HOOKED_H
#define HOOK_HOOKED_H

#include <stdint.h>

#include "sample/regs.h"

/*
 * A struct regs: where the function that this stands in was called from. The caller's frame pointer is the first word
 * of the function's own frame.
 */
#define HOOK_CALLER() \
	((struct regs){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)__builtin_dwarf_cfa(), \
		       .fp = *(const uintptr_t *)__builtin_frame_address(0)})

#endif
