/* SPDX-License-Identifier: MIT */
/* Reading the interrupted thread's native stack, inside the signal handler. */
#ifndef SAMPLE_STACK_H
#define SAMPLE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe_copy.h"
#include "sample/regs.h"

/* A copy of the stack from sp upwards. It normally takes one system call, and reading the copy cannot fault. */
struct stack_copy {
	uintptr_t low;
	size_t bytes;
	unsigned char data[SAFE_COPY_MAX];
};

/* Copies at most `bytes`. Returns false when nothing can be copied. */
bool stack_copy(struct stack_copy *stack, uintptr_t sp, size_t bytes);
/* Stores the word at `address`. Returns false when it is not in the copy. */
bool stack_word(const struct stack_copy *stack, uintptr_t address, uintptr_t *ret_word);

#endif
