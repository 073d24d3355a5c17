/* SPDX-License-Identifier: MIT */
/* AsyncGetCallTrace on the interrupted thread, inside the signal handler. */
#pragma once

#include <ucontext.h>

#include "sample/stack.h"

/*
 * AsyncGetCallTrace gives up when the thread is in Java but its top frame is not complete: in a stub, in a method's
 * prologue or epilogue, or in a native leaf that Java called without leaving the Java state. Each repair guesses
 * registers from which the walk can start; the walk then checks them.
 *
 * Where the guess is a caller, pc is inside its call instruction, not after it. AsyncGetCallTrace looks for the debug
 * information that follows pc, and the code after the call may be inlined from another method.
 *
 * A repair returns registers to try instead of *now, or false when it does not apply.
 */
typedef bool (*repair_function)(const struct regs *now, const struct stack_copy *stack, struct regs *ret_fixed);

/* In the order in which they are tried; NULL at the end. */
extern const repair_function repairs[];

/* Returns true if AsyncGetCallTrace would fault with these registers. Then only repaired ones may be tried. */
bool repair_walk_would_fault(const struct regs *now);

struct asgct_frame;

struct java_walk {
	uintptr_t java_thread;	    /* JavaThread of the calling thread */
	struct asgct_frame *frames; /* room for max_depth */
	int max_depth;
	struct stack_copy *stack; /* scratch */
	ucontext_t *scratch;
	bool refused;  /* result: the walk failed, and the stack could not be copied for a repair */
};

/* Returns the number of frames, or AsyncGetCallTrace's failure code <= 0. Does not change `context`. */
int java_walk(struct java_walk *walk, const ucontext_t *context);
