/* SPDX-License-Identifier: MIT */
/*
 * AsyncGetCallTrace gives up when the thread is in Java but its top frame is not complete: in a stub, in a method's
 * prologue or epilogue, or in a native leaf that Java called without leaving the Java state. Each repair guesses
 * registers from which the walk can start; the walk then checks them.
 *
 * Where the guess is a caller, pc is inside its call instruction, not after it. AsyncGetCallTrace looks for the debug
 * information that follows pc, and the code after the call may be inlined from another method.
 */
#ifndef SAMPLE_REPAIR_H
#define SAMPLE_REPAIR_H

#include "sample/stack.h"

/* Registers to try instead of *now; false when this repair does not apply. */
typedef bool (*repair_function)(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed);

/* In the order in which they are tried; NULL at the end. */
extern const repair_function repairs[];

/* Returns true if AsyncGetCallTrace would fault with these registers. Then only repaired ones may be tried. */
bool repair_walk_would_fault(const struct regs *now);

#endif
