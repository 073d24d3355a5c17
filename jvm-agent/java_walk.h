/* SPDX-License-Identifier: MIT */
/* AsyncGetCallTrace on the interrupted thread, inside the signal handler. */
#ifndef JAVA_WALK_H
#define JAVA_WALK_H

#include <stdbool.h>
#include <ucontext.h>

#include "jvm.h"
#include "stack.h"

struct java_walk {
	uintptr_t java_thread;	    /* of the calling thread */
	struct asgct_frame *frames; /* room for max_depth */
	int max_depth;
	struct stack_copy *stack; /* scratch */
	ucontext_t *scratch;
	bool repaired; /* out: the registers were corrected before the walk succeeded */
	bool refused;  /* out: it failed, and the stack could not be read to repair it */
};

/* Frames walked, or AsyncGetCallTrace's failure code <= 0. `context` is not changed. */
int java_walk(struct java_walk *walk, const ucontext_t *context);

#endif
