/* SPDX-License-Identifier: MIT */
/*
 * AsyncGetCallTrace gives up when the thread is in Java but its top frame is not
 * complete: in a stub, in a method's prologue or epilogue, in a native leaf that
 * Java called without leaving the Java state. Each repair is a guess at registers
 * the walk can start from; the walk then checks them. Where that is a caller, pc lies inside
 * its call instruction, not behind it: AsyncGetCallTrace looks for the debug information
 * that follows pc, and what is behind may be inlined from somewhere else.
 */
#ifndef REPAIR_H
#define REPAIR_H

#include "stack.h"

/* Registers to try instead of *now; false when this repair does not apply. */
typedef bool (*repair_function)(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed);

/* In the order they are to be tried, NULL at the end. */
extern const repair_function repairs[];

/* Would AsyncGetCallTrace fault with these registers? Then only repaired ones may be tried. */
bool repair_walk_would_fault(const struct regs *now);

#endif
