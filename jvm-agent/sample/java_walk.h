/* SPDX-License-Identifier: MIT */
/* AsyncGetCallTrace on the interrupted thread, inside the signal handler. */
#ifndef SAMPLE_JAVA_WALK_H
#define SAMPLE_JAVA_WALK_H

#include <stdbool.h>
#include <ucontext.h>

#include "jvm/jvm.h"
#include "sample/stack.h"

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

#endif
